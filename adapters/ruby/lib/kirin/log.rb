# frozen_string_literal: true

module Kirin
  # The log of Kirin's own files, whatever the application does to its standard streams.
  #
  # A full disk, a closed terminal or a missing reader loses lines, and nothing else happens: no
  # process waits, fails or dies because of its log.
  module Log
    # Standard streams have the descriptors below this one.
    FIRST_DESCRIPTOR = 3

    # fcntl(2), by its numbers: the library with their names is a gem (see SystemCalls).
    F_DUPFD_CLOEXEC = 1030
    F_SETPIPE_SZ = 1031

    # The bytes of the largest pipe that every user may have.
    PIPE_BYTES = 1024 * 1024

    # A text may come from a visitor. It must not control a terminal.
    CONTROL_CHARACTER = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/
    # A line within an entry that could look like one of Kirin.
    NEXT_LINE = /\n(?=[^\n\t ])/

    @stream = nil
    @environment = nil

    class << self
      # The environment of the request that is being served, or nil. Entries have its id.
      attr_accessor :environment
      # The stream to the log, or nil.
      attr_reader :stream

      # Keeps the present STDERR for the messages of Kirin's own files.
      def keep
        @stream = IO.for_fd(above_standard($stderr), "w")
        @stream.sync = true
      end

      # Returns the number of a copy of a stream that is not a standard stream and is closed by
      # exec(2). Programs that the application starts write to the standard streams.
      def above_standard(stream)
        stream.fcntl(F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
      end

      # Makes writes to STDERR return at once if it is a pipe or a terminal.
      #
      # The file is opened again, because other programs share the open file and must not find it
      # non-blocking. A pipe of another user cannot be opened, so it stays unchanged.
      def never_wait
        is_pipe = $stderr.stat.pipe?
        return unless is_pipe || $stderr.tty?

        flags = File::WRONLY | File::APPEND | File::NONBLOCK | File::NOCTTY
        own = IO.for_fd(IO.sysopen("/proc/self/fd/2", flags), "a")
        grow(own) if is_pipe
        $stderr.reopen(own)
        own.close
      rescue SystemCallError
        nil
      end

      # Writes bytes to a stream without its buffer. Returns whether all have been written. Bytes
      # that cannot be written at once are lost.
      def write_or_lose(stream, bytes)
        count = stream.syswrite(bytes)
        while count < bytes.bytesize
          bytes = bytes.byteslice(count..)
          count = stream.syswrite(bytes)
        end
        true
      rescue SystemCallError
        # The disk is full, or no process reads. There is no other place to report that.
        false
      end

      # Writes one entry with the time, and with the id of the request that is being served.
      #
      # Lines after the first one are indented. It never waits and never raises an exception. It can
      # be called in the handler of a signal.
      def line(text)
        return if @stream.nil?

        text = printable(text).chomp
        id = @environment && @environment["HTTP_X_REQUEST_ID"]
        text = text.sub(/(?=\n|\z)/) { " request_id=#{printable(id)}" } if id
        write_or_lose(@stream, "#{now} #{text.gsub(NEXT_LINE, "\n  ")}\n")
      rescue StandardError
        # The application may have put anything into its environment.
        nil
      end

      # Returns a text in UTF-8 without bytes and characters that could control a terminal.
      def printable(text)
        text = text.to_s
        text = text.encode("UTF-8", invalid: :replace, undef: :replace, replace: "?") unless
          text.encoding == Encoding::BINARY
        text.dup.force_encoding(Encoding::UTF_8).scrub("?").gsub(CONTROL_CHARACTER, "?")
      end

      private

      # Returns the time as Kirin's own lines have it.
      def now
        Time.now.utc.strftime("%Y-%m-%dT%H:%M:%S.%6NZ")
      end

      # A larger pipe has more room before lines are lost.
      def grow(pipe)
        pipe.fcntl(F_SETPIPE_SZ, PIPE_BYTES)
      rescue SystemCallError
        nil
      end
    end
  end
end
