# frozen_string_literal: true

require "socket"

module Kirin
  # The front has closed the connection within a request, or has sent no request.
  class FrontGone < StandardError
  end

  # The front has closed the connection within a response: the client has disconnected.
  class ClientGone < Errno::EPIPE
    def initialize(message = "the client has disconnected")
      super
    end
  end

  # Brings requests to a worker and answers to the front, over a connection.
  #
  # Another transport has the same methods: bytes of requests come out of `receive`, and those of
  # answers go into `write`.
  class SocketTransport
    # The bytes that the first read of a request asks for. Most requests are shorter. Each read
    # allocates so much.
    FIRST_BYTES = 4096
    # The bytes that further reads ask for.
    READ_BYTES = 256 * 1024

    # recvmsg(2): the room for one descriptor.
    CONTROL_BYTES = 64

    F_GETFL = 3
    F_SETFL = 4

    attr_reader :connection
    # The flags of recvmsg(2) and its message with the descriptor of a body, or nil, which came with
    # the last request.
    attr_reader :flags, :control

    # `connection` is a UNIXSocket, which the transport closes.
    def initialize(connection)
      @connection = connection
      # A read of a blocking socket is one system call, and of another one up to three.
      flags = connection.fcntl(F_GETFL)
      connection.fcntl(F_SETFL, flags & ~File::NONBLOCK)
    end

    # Waits for a request. Returns the bytes of it that came first, or nil when the front has ended
    # the connection.
    def receive
      data, _, @flags, @control = @connection.recvmsg(
        FIRST_BYTES, 0, CONTROL_BYTES, scm_rights: true
      )
      data unless data.nil? || data.empty?
    rescue SystemCallError
      nil
    end

    # Returns more bytes of a request, at most `most`. Raises FrontGone.
    def receive_rest(most = READ_BYTES)
      @connection.readpartial([most, READ_BYTES].min)
    rescue SystemCallError, IOError
      raise FrontGone
    end

    # Writes strings. Raises ClientGone.
    def write(*bytes)
      @connection.write(*bytes)
    rescue SystemCallError, IOError
      raise ClientGone
    end

    # Answers with a plain response. Returns false: the worker makes the bytes, and writes them.
    def answer(_status, _headers, _body)
      false
    end

    # Writes strings that are a complete answer. Raises ClientGone.
    def write_whole(*bytes, **)
      write(*bytes)
    end

    # Says that the work after an answer is done. A worker that leaves need not say it. Raises
    # ClientGone.
    def end_work(is_stopping)
      write("\n") unless is_stopping
    end

    # Ends the wait for a request. One that is there already can still be read. It can be called in
    # the handler of a signal.
    def stop_receiving
      # The kernel refuses what the front sends from now on, so that the front knows that nobody has
      # read it.
      @connection.shutdown(Socket::SHUT_RD)
    rescue SystemCallError, IOError
      nil
    end

    # Ends the connection, also if the application or a process of it has kept a copy of it.
    def hang_up
      @connection.shutdown(Socket::SHUT_RDWR)
    rescue SystemCallError, IOError
      nil
    ensure
      close
    end

    def close
      @connection.close
    end
  end
end
