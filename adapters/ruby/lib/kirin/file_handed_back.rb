# frozen_string_literal: true

module Kirin
  # Finds the file behind a body, for the front to send.
  #
  # A body with `to_path` need not go through the worker: Rack says that the file has the content
  # that `each` gives. The front opens the file itself, or has it open already.
  # docs/worker-protocol.md has the form of `Kirin-File`.
  #
  # A body that is an open file must be at its start, and the path must lead to the same file.
  # `Content-Length`, if there is one, is the size of the file.
  module FileHandedBack
    # The user that loads this file, before an application may change the user. It is the front's.
    USER = Process.euid

    # A path with these cannot be in a field.
    IMPOSSIBLE_PATH = /[\x00-\x1f\x7f]| \z/n.freeze

    class << self
      # Returns the value of `Kirin-File`, or nil if only the worker can send the body. `length` is
      # the application's length of the body, or nil.
      def field_value(body, length)
        # The front may be allowed to read files that this user may not.
        return if Process.euid != USER

        path = File.expand_path(body.to_path).b
        return if path.match?(IMPOSSIBLE_PATH)

        state = File.stat(path)
        return if !state.file? || !File.readable?(path) || !same?(body, state)
        return if length && length != state.size

        "#{fields(state)} ".b << path
      rescue SystemCallError, IOError, ArgumentError, TypeError
        nil
      end

      private

      # Returns whether a body, if it is an open file, would give the bytes of the file.
      def same?(body, state)
        return true unless body.respond_to?(:pos)
        return false unless body.pos.zero? && !body.closed?

        file = body.respond_to?(:to_io) ? body.to_io : body
        # Its text could be in another encoding than the file.
        file.internal_encoding.nil? && fields(file.stat) == fields(state)
      end

      # Returns what distinguishes one state of a file from all others. Times are whole seconds.
      def fields(state)
        [state.dev, state.ino, state.size, state.mtime.to_i, state.ctime.to_i].join(" ")
      end
    end
  end
end
