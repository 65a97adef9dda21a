# frozen_string_literal: true

module Kirin
  # A mistake of the application in its response.
  class ResponseError < StandardError
  end
end
