# frozen_string_literal: true

require "stringio"
require "tmpdir"
require_relative "socket_transport"
require_relative "traps"

module Kirin
  # The body of a request as `rack.input`.
  #
  # The front has read the complete body from the client before it sends a request, so nothing here
  # waits for a client. A body of up to 1 MiB stays in memory. A longer one is in a file of the
  # front, which comes as a descriptor. If the front sends the bytes of a long body nevertheless,
  # they go to a file without a name in TMPDIR. All of them can be read again from the start.
  module RequestBody
    # Bodies of up to this size stay in memory.
    MEMORY_BYTES = 1024 * 1024

    # A body that cannot be kept. It has been read to its end, so another request can follow.
    NotKept = Class.new(StandardError)

    class << self
      # Returns the body of `length` bytes. `received` came with the head. Raises FrontGone or
      # NotKept.
      def receive(length, received, transport)
        return in_file(length, received, transport) if length > MEMORY_BYTES

        received << transport.receive_rest(length - received.bytesize) while
          received.bytesize < length
        StringIO.new(received).binmode
      end

      # Returns the body whose descriptor the front has handed over. `control` is the message of
      # recvmsg(2), or nil if the kernel had no descriptor left. Raises NotKept.
      def from_descriptor(control)
        stream, *others = control&.unix_rights
        raise NotKept, "its file cannot be taken over: no descriptor is left" if stream.nil?

        others.each(&:close)
        # A file knows its size.
        stream.autoclose = false
        File.for_fd(stream.fileno, "rb")
      end

      private

      def in_file(length, received, transport)
        before = Traps.set("XFSZ", "IGNORE")
        file, reason = open_file
        left = length
        data = received
        loop do
          left -= data.bytesize
          reason ||= failure { file.write(data) }
          break if left <= 0

          data = transport.receive_rest(left)
        end
        reason ||= failure { file.rewind }
        return file if reason.nil?

        file&.close
        raise NotKept, "no room for it in a temporary file: #{reason.message}"
      ensure
        # Without this a limit on the size of files (RLIMIT_FSIZE) would end the process.
        Traps.set("XFSZ", before || "DEFAULT")
      end

      # Returns a file without a name, or nil and the reason.
      def open_file
        file = File.open(Dir.tmpdir, File::RDWR | File::TMPFILE, 0o600)
        file.binmode
        # Each error belongs to the bytes that are written.
        file.sync = true
        [file, nil]
      rescue SystemCallError, ArgumentError => error
        [nil, error]
      end

      def failure
        yield
        nil
      rescue SystemCallError => error
        error
      end
    end
  end
end
