# frozen_string_literal: true

require_relative "response_error"
require_relative "socket_transport"

module Kirin
  # Brings requests to a worker and answers to the front, through memory.
  #
  # A request that does not fit into the memory comes over the connection, and its answer goes back
  # there. So does the answer to any other request if it is not complete when it begins, or does not
  # fit.
  class RingTransport < SocketTransport
    # `connection` is that on which the Ring was offered. The transport closes both.
    def initialize(connection, ring)
      super(connection)
      @ring = ring
      @is_stopped = @is_over_connection = false
    end

    # Waits for a request. Returns its environment, or the bytes of it that came first over the
    # connection, or nil when the worker must leave.
    def receive
      @is_over_connection = false
      until @is_stopped
        request = @ring.take
        return request if request.instance_of?(Hash)
        return if request == false
        next unless request

        @is_over_connection = true
        return super
      end
    end

    # Returns the bytes of the body of a request whose environment came.
    def body
      @ring.body
    end

    # Returns whether the path of that request is the same percent-encoded as it is decoded.
    def plain_path?
      @ring.plain_path?
    end

    # Returns its `rack.after_reply` and `rack.response_finished`.
    def after
      @ring.after
    end

    # Answers with a plain response, if no work follows it. Returns false, and has done nothing, if
    # it is another one.
    def answer(status, headers, body)
      @ring.answer(status, headers, body)
    end

    # Raises ResponseError if the request has its answer already.
    def write(*bytes)
      take_connection unless @is_over_connection
      super
    end

    def write_whole(*bytes, has_work: false)
      write(*bytes) if @is_over_connection || !@ring.answer_bytes(bytes, has_work)
    end

    def end_work(is_stopping)
      @is_over_connection ? super : @ring.cleaned_up
    end

    # Ends the wait for a request. It can be called in the handler of a signal.
    def stop_receiving
      @is_stopped = true
    end

    def close
      @ring.detach
      super
    end

    private

    # Lets the answer go over the connection.
    def take_connection
      raise ResponseError, "the request has its response already" unless @ring.over_connection

      @is_over_connection = true
    end
  end
end
