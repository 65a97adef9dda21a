# frozen_string_literal: true

# Waits for conditions, and never for fixed times.
module Waiting
  # Slow machines multiply the time that tests wait for something that must happen.
  SECONDS = 30 * (ENV["KIRIN_TEST_WAIT_FACTOR"] || 1).to_f

  module_function

  # Waits until the block returns something true, and returns that.
  def wait_until(what = "the condition")
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + SECONDS
    until (found = yield)
      raise "waited too long: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      sleep(0.01)
    end
    found
  end
end
