# frozen_string_literal: true

module Kirin
  # After how many requests a worker leaves (`max_requests`).
  module RequestNumber
    # Workers that started together must not all leave together. So up to this part of the number of
    # requests is subtracted at random.
    JITTER = 0.1

    # Returns the number of requests that one worker serves: -1 if there is no limit.
    def self.drawn(most)
      most.to_i.positive? ? most - Random.rand(1 + (most * JITTER).to_i) : -1
    end
  end
end
