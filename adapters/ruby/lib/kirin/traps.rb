# frozen_string_literal: true

module Kirin
  # Handlers of signals, and whether the application has set one.
  #
  # Ruby can tell the handler of a signal only when it sets another one. So the adapter notices each
  # call of `trap`.
  module Traps
    # As it was before it is noticed.
    ORIGINAL = Signal.method(:trap)
    private_constant :ORIGINAL

    @changed = true

    class << self
      # Whether the application has set a handler since the adapter has set its own.
      attr_accessor :changed

      # Sets a handler of the adapter. Returns the handler before it.
      def set(name, handler)
        ORIGINAL.call(name, handler)
      end

      # Notices calls of `trap` from now on.
      def notice
        Signal.singleton_class.prepend(Noticed)
        Kernel.singleton_class.prepend(Noticed)
        Kernel.prepend(PrivatelyNoticed)
      end
    end

    # `Signal.trap` and `Kernel.trap`.
    module Noticed
      def trap(*)
        Traps.changed = true
        super
      end
    end

    # `trap` without a receiver.
    module PrivatelyNoticed
      private

      def trap(*)
        Traps.changed = true
        super
      end
    end
  end
end
