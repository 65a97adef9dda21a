# frozen_string_literal: true

require "socket"
require_relative "log"
require_relative "threads"

module Kirin
  # Gives the application the connection of a request for another protocol (`Upgrade`).
  #
  # `rack.hijack` is there only in such requests: over HTTP/1.1, with `Upgrade`, and without a body.
  # The connection of any other request belongs to the front, which frames the response to the
  # client itself. An application has partial hijacking and streaming bodies there.
  #
  # The socket belongs to the application until it closes it. When the application has returned and
  # has no other thread that could use the socket, the connection ends.
  class HandOver
    # Seconds between two looks whether the socket is still used.
    TICK_SECONDS = 1.0

    # A socket that tells the worker when it is closed.
    class HijackedSocket < UNIXSocket
      def close
        super
      ensure
        Thread.main.wakeup if Thread.current != Thread.main
      end
    end
    private_constant :HijackedSocket

    # `environment` gets `rack.hijack` and, when that is called, `rack.hijack_io`. The block returns
    # whether a signal has told the worker to leave. That ends the wait for other threads.
    def initialize(connection, environment, &must_leave)
      @connection = connection
      @must_leave = must_leave
      @environment = environment
      @is_hijacked = false
      environment["rack.hijack?"] = true
      environment["rack.hijack"] = self
    end

    # Whether the application has taken the connection, so that no response can be sent.
    def hijacked?
      @is_hijacked
    end

    # Takes the connection: full hijacking. The application writes the complete response to the
    # socket that this returns, and then speaks its own protocol.
    def call
      raise IOError, "the request has ended" if @is_ended

      @is_hijacked = true
      @environment["rack.hijack_io"] = socket
    end

    # Returns a copy of the connection.
    def socket
      @socket ||= HijackedSocket.for_fd(Log.above_standard(@connection))
    end

    # Waits until the application does not use the socket any more.
    def wait_until_closed
      return if @socket.nil?

      sleep(TICK_SECONDS) while used? && !@must_leave.call
    end

    # An application may show its environment, which is in here.
    def inspect
      "#<Kirin::HandOver>"
    end

    # Closes the socket, also if the application still refers to it.
    def end
      @is_ended = true
      @socket&.close
    end

    private

    def used?
      !@socket.closed? && !Threads.of_application.empty? && !front_gone?
    end

    # Returns whether the front has closed the connection: the client has disconnected.
    def front_gone?
      # This waits for urgent data, of which a unix socket has none, and so only for the end. It
      # returns nil if nothing has happened.
      !@connection.wait(IO::PRIORITY, 0).nil?
    rescue IOError, SystemCallError
      true
    end
  end
end
