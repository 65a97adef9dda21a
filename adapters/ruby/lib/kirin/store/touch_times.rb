# frozen_string_literal: true

module Kirin
  class Store
    # When this process has touched sessions.
    #
    # Where several machines share the store, each touch is a write. So a process touches a session
    # once within a tenth of its life.
    class TouchTimes
      # The most sessions of which a process remembers when it has touched them.
      MOST = 10_000

      def initialize
        @last = {}
      end

      # Returns whether a session that lives for `ttl` seconds must be touched, and notes the time.
      def due?(session_id, ttl)
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        last = @last[session_id]
        return false if last && now - last < ttl / 10.0

        @last.clear if @last.size >= MOST
        @last[session_id] = now
        true
      end

      def forget(session_id)
        @last.delete(session_id)
      end
    end
  end
end
