# frozen_string_literal: true

require_relative "response_error"
require_relative "response_head"

module Kirin
  # The `rack.early_hints` of a worker: sends a 103 response before the final one, at once.
  class EarlyHints
    STATUS = 103

    def initialize(worker)
      @worker = worker
      @head = ResponseHead.new
    end

    # Sends fields, as those of a response: `{"link" => "</a.css>; rel=preload"}`. Raises
    # ResponseError after the start of the response, or if the fields cannot be sent.
    def call(fields)
      # A thread may outlive its request, and must not reach the response to another one.
      unless @worker.before_response? && Thread.current == Thread.main
        raise ResponseError, "an early hint comes after the response has begun"
      end

      @worker.transport.write(@head.build(STATUS, fields), "\r\n")
      nil
    end

    # An application may show its environment, and the worker is too much for that.
    def inspect
      "#<Kirin::EarlyHints>"
    end
  end
end
