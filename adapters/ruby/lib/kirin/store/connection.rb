# frozen_string_literal: true

require "io/wait"
require "socket"
require_relative "address"
require_relative "error"

module Kirin
  class Store
    # One connection to a memcached. Every method raises `Error` if it fails.
    #
    # After a failure, the next bytes on a connection would be the answer to another command. So its
    # user must close it.
    class Connection
      READ_BYTES = 64 * 1024

      # A reply line is shorter. Only a peer that is not a memcached sends more.
      LINE_BYTES = 8 * 1024

      NO_REPLY = "what came is no reply of a memcached"

      # `timeout` has the seconds for connecting and for each wait.
      def initialize(address, timeout)
        @timeout = timeout
        @received = String.new(encoding: Encoding::BINARY)
        @part = String.new(encoding: Encoding::BINARY)
        @socket = connect(address)
      end

      # Returns whether a connection without a command in progress is open and has no bytes.
      def usable?
        @received.empty? && !@socket.wait_readable(0)
      rescue SystemCallError, IOError
        false
      end

      # Sends all bytes. The time limit holds for each part that the kernel takes.
      def write(data)
        until data.empty?
          # The application may have changed what SIGPIPE does.
          sent = @socket.sendmsg_nonblock(data, Socket::MSG_NOSIGNAL, exception: false)
          if sent == :wait_writable
            raise no_answer unless @socket.wait_writable(@timeout)
          else
            return if sent == data.bytesize

            data = data.byteslice(sent..)
          end
        end
      rescue SystemCallError, IOError => e
        raise Error, "write: #{text(e)}"
      end

      # Returns the next line, without its end.
      def line
        searched = 0
        until (finish = @received.index("\r\n", searched))
          raise Error, NO_REPLY if @received.bytesize > LINE_BYTES

          # The end may be in two parts.
          searched = [0, @received.bytesize - 1].max
          fill
        end
        @received.slice!(0, finish + 2).chomp("\r\n")
      end

      # Returns a block of data of this length. A line end must follow it.
      def block(length)
        fill while @received.bytesize < length + 2
        raise Error, NO_REPLY unless @received.byteslice(length, 2) == "\r\n"

        data = @received.slice!(0, length)
        @received.slice!(0, 2)
        data
      end

      def close
        @socket.close
      end

      private

      def connect(address)
        finish = now + @timeout
        failure = "the name has no address"
        Address.candidates(address).each do |family, where|
          # All meanings of a name together have the time of one.
          left = finish - now
          raise no_answer unless left.positive?

          begin
            return connected(family, where, left)
          rescue Errno::EAGAIN
            # The queue of a unix socket is full.
            raise no_answer
          rescue SystemCallError => e
            failure = text(e)
          end
        end
        raise Error, failure
      end

      def connected(family, where, seconds)
        socket = Socket.new(family, Socket::SOCK_STREAM)
        begin
          if socket.connect_nonblock(where, exception: false) == :wait_writable
            raise no_answer unless socket.wait_writable(seconds)

            error = socket.getsockopt(Socket::SOL_SOCKET, Socket::SO_ERROR).int
            raise SystemCallError.new(nil, error) unless error.zero?
          end
          if family != Socket::AF_UNIX
            socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          end
          is_done = true
          socket
        ensure
          socket.close unless is_done
        end
      end

      def fill
        case @socket.read_nonblock(READ_BYTES, @part, exception: false)
        when :wait_readable
          raise no_answer unless @socket.wait_readable(@timeout)
        when nil
          raise Error, "it has closed the connection"
        else
          @received << @part
        end
      rescue SystemCallError, IOError => e
        raise Error, "read: #{text(e)}"
      end

      def no_answer
        NoAnswer.new("no answer within #{format('%g', @timeout)} s")
      end

      # Returns what is wrong, without the name of the system call.
      def text(error)
        error.message[/\A[^\n]*?(?= - |\n|\z)/]
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
