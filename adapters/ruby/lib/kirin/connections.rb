# frozen_string_literal: true

require "socket"
require_relative "log"
require_relative "ring"
require_relative "version"

module Kirin
  # Accepts the connections of the front, one after the other.
  class Connections
    # Seconds after which a worker that waits looks whether its parent is there.
    TICK_SECONDS = 1.0

    # `listener` is the stream of the app parent.
    def initialize(listener, generation)
      listener.autoclose = false
      @listener = UNIXServer.for_fd(listener.fileno)
      @generation = generation
      # A signal ends the wait.
      @wake_read, @wake_write = IO.pipe
    end

    # Returns the next connection, which has got its greeting, or nil when it is time to leave: the
    # block is true, or the parent has gone.
    def accept(parent)
      until yield || Process.ppid != parent
        IO.select([@listener, @wake_read], nil, nil, TICK_SECONDS)
        # Only a signal to leave writes to this pipe.
        return if yield

        connection = @listener.accept_nonblock(exception: false)
        return connection if connection.is_a?(UNIXSocket) && greet(connection)
      end
      nil
    rescue Errno::EMFILE, Errno::ENFILE
      Log.line("kirin: worker #{Process.pid}: leaves: no descriptor is left")
      nil
    end

    # Ends the wait. It can be called in the handler of a signal.
    def wake
      @wake_write.write_nonblock("\0", exception: false)
    rescue SystemCallError, IOError
      nil
    end

    # Closes the listener in a process that is no worker.
    def close
      @listener.close
    end

    private

    # Returns whether the front takes the greeting.
    def greet(connection)
      # This is how an application does without what needs more than reading and writing.
      descriptor = ENV["KIRIN_RING"] == "0" ? "" : " body=descriptor"
      connection.write("KIRIN/1 pid=#{Process.pid} generation=#{@generation} " \
                       "adapter=ruby/#{VERSION}#{descriptor}#{" speaks=2" if Ring.available?}\n")
      true
    rescue SystemCallError
      connection.close
      false
    end
  end
end
