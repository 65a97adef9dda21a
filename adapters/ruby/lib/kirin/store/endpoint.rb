# frozen_string_literal: true

require_relative "connection"
require_relative "error"

module Kirin
  class Store
    # The connections of this process to one address, which all its threads share. It lends each to
    # one thread at a time.
    class Endpoint
      # Seconds without a retry after a timeout. A host that does not answer must not cost every
      # request the time limit. A refusal costs nothing, so there is no pause after it.
      PAUSE_SECONDS = 1.0

      # The most connections that wait for their next use. More exist only while more threads need
      # them.
      IDLE_CONNECTIONS = 16

      @endpoints = {}

      # Returns the endpoint for an address. Clients with the same address and time limit share
      # their connections and their pause.
      def self.for(address, timeout)
        # Two threads may each make one. Nothing but a connection more comes of it.
        @endpoints[[address, timeout]] ||= new(address, timeout)
      end

      def initialize(address, timeout)
        @address = address
        @timeout = timeout
        # `push` and `pop` of an array are atomic in CRuby. A lock could not be taken in a handler
        # of a signal.
        @idle = []
        @pid = Process.pid
        @not_before = nil
        @failure = nil
      end

      # Calls the block with a connection, and returns its result. Connects if none is idle.
      #
      # The block must read every reply to what it sends. It is called once, because the store may
      # have carried out a command that has failed.
      def converse
        begin_in_child if @pid != Process.pid
        if @not_before && now < @not_before
          raise Error, "#{@address}: #{@failure}; no new try for a moment"
        end

        begin
          connection = usable || Connection.new(@address, @timeout)
          result = yield connection
          is_done = true
          result
        rescue Error => e
          pause(e.message) if e.is_a?(NoAnswer)
          raise e.class, "#{@address}: #{e.message}"
        ensure
          # After an exception of a signal handler, a reply is still to come.
          is_done ? give_back(connection) : connection&.close
        end
      end

      # Closes the idle connections. The next command connects again.
      def close
        while (connection = @idle.pop)
          connection.close
        end
      end

      private

      # Returns an idle connection, or nil. Closes those that the store has closed.
      def usable
        while (connection = @idle.pop)
          return connection if connection.usable?

          connection.close
        end
      end

      def give_back(connection)
        if @idle.size < IDLE_CONNECTIONS
          @idle.push(connection)
        else
          connection.close
        end
      end

      def pause(failure)
        @failure = failure
        @not_before = now + PAUSE_SECONDS
        close
      end

      # Forgets the connections of the parent process, which still uses them.
      def begin_in_child
        @pid = Process.pid
        @not_before = nil
        close
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
