# frozen_string_literal: true

module Memo
  # Why there is no page. A handler raises it, and `Site` makes a page of it.
  class Refusal < StandardError
    attr_reader :status, :headers

    def initialize(status, reason, headers = {})
      super(reason)
      @status = status
      @headers = headers
    end
  end
end
