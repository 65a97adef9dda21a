# frozen_string_literal: true

module Kirin
  # Calls a block in each process that the application forks, before the application's code runs.
  #
  # Such a process must not have the handlers and channels of the process that was forked.
  module ForkGuard
    @in_child = nil
    @is_own = false

    class << self
      # Sets the block, in place of the one before.
      def guard(&block)
        @in_child = block
      end

      # Notices forks from now on.
      def notice
        if Process.respond_to?(:_fork)
          Process.singleton_class.prepend(Noticed)
        else
          # Ruby 3.0.
          Process.singleton_class.prepend(NoticedWithBlock)
          Kernel.singleton_class.prepend(NoticedWithBlock)
          Kernel.prepend(PrivatelyNoticedWithBlock)
        end
      end

      # Forks a process of the adapter itself, which runs the block and ends. Returns its id.
      def fork_own(&block)
        @is_own = true
        Process.fork do
          @is_own = false
          @in_child = nil
          block.call
        end
      ensure
        @is_own = false
      end

      # Belongs to the modules below.
      def in_child
        @in_child&.call unless @is_own
      end
    end

    # What Kernel#fork, Process.fork and IO.popen("-") call.
    module Noticed
      def _fork
        pid = super
        ForkGuard.in_child if pid.zero?
        pid
      end
    end

    # The same for a Ruby without such a method: Process.fork and Kernel.fork.
    module NoticedWithBlock
      def fork
        unless block_given?
          pid = super
          ForkGuard.in_child if pid.nil?
          return pid
        end
        super do
          ForkGuard.in_child
          yield
        end
      end
    end

    # `fork` without a receiver.
    module PrivatelyNoticedWithBlock
      include NoticedWithBlock
      private :fork
    end
  end
end
