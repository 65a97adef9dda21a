# frozen_string_literal: true

module Memo
  # What the store has is only a copy. A failure to store it must not affect the response.
  module OnlyACopy
    # Returns what the block returns. Logs an exception, and returns false then.
    def self.store(what)
      yield
    rescue Kirin::Store::Error => e
      warn "memo: #{what} is not stored: #{e.message}"
      false
    rescue StandardError => e
      warn "memo: #{what} is not stored: #{e.full_message(highlight: false)}"
      false
    end
  end
end
