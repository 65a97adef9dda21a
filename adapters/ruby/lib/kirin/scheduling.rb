# frozen_string_literal: true

require_relative "system_calls"

module Kirin
  # Workers give way to the front.
  module Scheduling
    SCHED_BATCH = 3

    # Makes this process a batch process (sched(7)). Returns whether the kernel has done so.
    #
    # When a request wakes it, it waits for its turn and does not preempt the running process. On a
    # busy core that is the front, which is handing out requests.
    def self.give_way
      SystemCalls.succeeds?(:sched_setscheduler, 0, SCHED_BATCH, [0].pack("l"))
    end
  end
end
