# frozen_string_literal: true

require "socket"
require_relative "after_response"
require_relative "connections"
require_relative "death_signal"
require_relative "early_hints"
require_relative "error_stream"
require_relative "fork_guard"
require_relative "hand_over"
require_relative "log"
require_relative "overdue"
require_relative "own_response"
require_relative "rack_environment"
require_relative "rack_path"
require_relative "request_body"
require_relative "request_head"
require_relative "request_number"
require_relative "response"
require_relative "response_head"
require_relative "ring"
require_relative "ring_transport"
require_relative "socket_transport"
require_relative "store/site"
require_relative "trace"
require_relative "traps"
require_relative "worker_signals"

module Kirin
  # Answers the requests of the front with a Rack application, one at a time.
  #
  # docs/worker-protocol.md describes the protocol. The front does the waiting, the parsing of HTTP,
  # and the work for slow clients. For a response that is an array the worker makes two system calls
  # a request.
  #
  # An application finds these keys in its environment besides those of Rack:
  #
  # rack.early_hints::        a callable that sends a 103 response at once, with a hash of fields
  # rack.response_finished::  an array of callables for the time after the response, as in Rack 3
  # rack.after_reply::        the same without arguments, as in Puma
  # rack.hijack::             only in requests for another protocol, see HandOver
  # kirin.leave::             a callable: the worker leaves after this response
  class Worker
    # What carries requests and answers at present.
    attr_reader :transport
    # The connection as the application may get it, or nil.
    attr_reader :hand_over

    # `listener` is a non-blocking stream. The worker ends if it is not a child of `parent`.
    # `options` is the Options of the app parent.
    def initialize(application, listener, parent, options, is_one_of_many)
      @application = application
      @parent = parent
      @deadline = options.deadline
      @pid = Process.pid
      @requests_left = RequestNumber.drawn(options.max_requests)
      @connections = Connections.new(listener, options.generation)
      @is_stopping = @is_idle = @is_limited = @is_unfinished = @has_announced_work = false
      @head = ResponseHead.new
      @errors = ErrorStream.new
      @constant = RackEnvironment.constant(
        errors: @errors, leave: -> { @is_stopping = true }, early_hints: EarlyHints.new(self),
        is_one_of_many: is_one_of_many
      )
      @signals = WorkerSignals.new(-> { stop }, -> { overdue })
    end

    # Makes this process a worker, before code of the application runs in it.
    def prepare
      @signals.install
      ForkGuard.guard { give_up }
      DeathSignal.end_with_parent(@parent, @deadline)
    end

    # Accepts connections and serves them, until the worker must leave.
    def run
      # A hook may have changed the user, which ends the death signal, and the handlers.
      prepare
      until @is_stopping || Process.ppid != @parent
        connection = @connections.accept(@parent) { @is_stopping }
        return if connection.nil?

        @transport = transport_over(connection)
        goes_on = serve(@transport)
        @transport.close
        @transport = nil
        return unless goes_on
      end
    rescue Overdue
      # The parent forks another worker.
      @transport&.hang_up
    end

    # Lets the worker leave after the request in progress. It can be called in a signal handler.
    def stop
      @is_stopping = @is_told_to_leave = true
      if !@is_limited && Process.ppid != @parent
        @is_limited = true
        DeathSignal.limit_life(@deadline)
      end
      @connections.wake
      @transport&.stop_receiving if @is_idle
    end

    # Returns whether no byte of the final response has been sent.
    def before_response?
      Log.environment && @response.nil? && !@hand_over&.hijacked? && Process.pid == @pid
    end

    # Returns whether the front may send a file in place of the worker.
    def may_hand_back?
      (@method == "GET" || @method == "HEAD") && !Log.environment.key?("KIRIN_SENDFILE")
    end

    # Returns the fields about the future of the worker.
    def last_fields
      fields = @is_stopping ? "Connection: close\r\n" : ""
      return fields if after.empty?

      @has_announced_work = @is_unfinished = true
      "#{fields}Kirin-Cleanup: 1\r\n"
    end

    # Returns whether the front knows of work after the response.
    def announced_work?
      @has_announced_work
    end

    # Calls the `close` of a body. The response stays as it is, even if this fails.
    def close_body(body)
      body.close if body.respond_to?(:close)
    rescue Overdue
      raise
    rescue Exception => error
      end_if_forked(error)
      Trace.log_failure(Log.environment, error)
    end

    private

    # Returns what carries requests and answers after the greeting.
    def transport_over(connection)
      transport = SocketTransport.new(connection)
      return transport unless Ring.available?

      ring = Ring.attach(connection, @parent, @constant) { @is_stopping }
      ring ? RingTransport.new(connection, ring) : transport
    end

    # Serves the requests that a transport brings. Returns whether the worker can serve another
    # connection; otherwise it must leave.
    def serve(transport)
      loop do
        @is_idle = true
        return false if @is_stopping

        data = transport.receive
        @is_idle = false
        return false if data.nil?

        is_whole = data.instance_of?(Hash) ? answer_through_ring(data) : answer(data)
        return hang_up unless is_whole && (!@is_unfinished || finish_request)

        # Objects of the application must go before the next request comes.
        forget_request
      end
    rescue FrontGone
      false
    end

    # Answers a request. Returns false if the connection must be closed. `data` is what came first.
    def answer(data)
      environment = RequestHead.of_whole(data)
      environment, rest = RequestHead.read(data, @transport) if environment.nil?
      length = environment["CONTENT_LENGTH"]
      RackEnvironment.complete(environment, @constant)
      RackPath.encode(environment)
      prepare_request(environment)
      @after = AfterResponse.in_environment(environment)
      if length != "0" || @transport.control
        refusal = take_body(environment, length.to_i, rest || String.new)
        return refusal unless refusal.nil?
      end
      prepare_hand_over(environment) if environment.key?("HTTP_UPGRADE")
      Log.environment = environment
      call(environment)
    end

    # Answers a request that has come through the ring, with its complete environment.
    def answer_through_ring(environment)
      RackPath.encode(environment) unless @transport.plain_path?
      prepare_request(environment)
      body = @transport.body
      environment["rack.input"] = StringIO.new(body).binmode if body
      Log.environment = environment
      call(environment)
    end

    # Begins a request that has a complete environment.
    def prepare_request(environment)
      @method = environment["REQUEST_METHOD"]
      Site.of_process = environment["KIRIN_SITE"]
      @requests_left -= 1
      @is_stopping = true if @requests_left.zero?
    end

    # Returns the work after the response to the request in progress.
    def after
      @after ||= AfterResponse.new(Log.environment, *@transport.after)
    end

    # Calls the application. Returns what `answer` returns.
    def call(environment)
      status, headers, body = @application.call(environment)
      @signals.install if Traps.changed
      if @hand_over&.hijacked?
        is_whole = end_hijack(body)
      elsif !@is_stopping && @transport.answer(status, headers, body)
        is_whole = true
      else
        head = @head.build(status, headers)
        is_whole = respond_at_once(head, body) || respond(head, status, headers, body)
      end
      @errors.finish_line if @errors.unfinished?
      is_whole
    rescue Exception => error
      after_failure(error, status, headers)
    end

    # Sends the usual response: an array with one string. Returns false if it is another one.
    def respond_at_once(head, body)
      return false unless body.instance_of?(Array) && body.size == 1 && @head.plain?

      part = body[0]
      return false unless part.instance_of?(String) && @method != "HEAD" && after.empty? &&
                          !@is_stopping && Process.pid == @pid

      @transport.write(head << "Content-Length: " << part.bytesize.to_s << "\r\n\r\n", part)
      true
    end

    # Sends another response. Returns what `answer` returns.
    def respond(head, status, headers, body)
      end_if_forked
      @outcome = [status, headers, nil]
      @response = Response.new(self, head, @head, @method == "HEAD")
      @response.send_body(body)
      end_if_forked
      @is_unfinished = true unless after.empty?
      !@response.switched?
    end

    # Waits until the application does not use the connection any more that it has taken. Rack says
    # that its response is ignored.
    def end_hijack(body)
      end_if_forked
      @hand_over.wait_until_closed
      close_body(body)
      false
    end

    # Answers 500 after an exception. Returns false if the response must be cut instead.
    def after_failure(error, status, headers)
      end_if_forked(error)
      @outcome = [status, headers, error]
      @is_stopping = true if error.is_a?(Overdue)
      @signals.install if Traps.changed
      @errors.finish_line
      return false if error.is_a?(Overdue) || error.is_a?(ClientGone)

      Trace.log_failure(Log.environment, error)
      return false if @response&.begun? || @hand_over&.hijacked?

      own_response(500)
    end

    # Sends a response of the worker itself. Returns what `answer` returns.
    def own_response(status)
      fields, text = OwnResponse.parts(status, Log.environment["HTTP_X_REQUEST_ID"])
      head = @head.build(status, fields)
      @response = Response.new(self, head, @head, @method == "HEAD")
      @response.whole([text])
      @is_unfinished = true unless after.empty?
      true
    rescue ClientGone
      false
    end

    # Sets `rack.input`. Returns nil, or what `answer` returns if the body cannot be kept.
    def take_body(environment, length, received)
      environment["rack.input"] = body =
        if @transport.control || @transport.flags.anybits?(Socket::MSG_CTRUNC)
          RequestBody.from_descriptor(@transport.control)
        else
          RequestBody.receive(length, received, @transport)
        end
      return unless body.is_a?(File)

      @input = body
      @is_unfinished = true
      nil
    rescue RequestBody::NotKept => error
      Log.environment = environment
      Log.line("kirin: worker #{@pid}: #{Trace.request_line(environment)}: the request body is " \
               "refused: #{error.message}")
      own_response(507)
    end

    # Lets the application take the connection if the client asks for another protocol.
    def prepare_hand_over(environment)
      return if environment["CONTENT_LENGTH"] != "0" || environment["SERVER_PROTOCOL"] != "HTTP/1.1"

      @hand_over = HandOver.new(@transport.connection, environment) { @is_told_to_leave }
      @is_unfinished = true
    end

    # Does the work after a response. Returns false if the connection must be closed first.
    def finish_request
      # The front has to know of it from the head.
      return false unless after.empty? || @has_announced_work

      run_after_response
      release
      # The front counts the time until this reports the end, or until the worker leaves.
      @transport.end_work(@is_stopping) if @has_announced_work
      true
    rescue ClientGone
      false
    end

    def run_after_response
      after.run(@outcome) do |error|
        end_if_forked(error)
        Trace.log_failure(Log.environment, error)
      end
      end_if_forked
      @errors.finish_line
      @signals.install if Traps.changed
    end

    # Closes what the request has opened, also if the application still refers to it.
    def release
      @hand_over&.end
      @input&.close
    end

    def forget_request
      Log.environment = Site.of_process = @response = @after = nil
      return unless @is_unfinished

      @is_unfinished = @has_announced_work = false
      @input = @hand_over = @outcome = nil
    end

    # Ends the connection. Returns whether the worker accepts another one. The front cannot know
    # then that the worker is not idle yet, so the work after the response comes afterwards.
    def hang_up
      @transport.hang_up
      run_after_response
      release
      forget_request
      !@is_stopping
    end

    # Logs where a request hangs that takes too long, and ends it. This is the handler of a signal.
    def overdue
      return stop if Log.environment.nil?

      @is_stopping = true
      Trace.log_overdue(Log.environment, caller)
      raise Overdue
    end

    # Takes handlers and connections away from a process that the application has forked. Otherwise
    # the front could not see that the worker has ended.
    def give_up
      ForkGuard.guard { nil }
      @signals.give_up
      @transport&.close
      @connections.close
    end

    # Ends a process that the application has forked and that has not ended by itself. It must not
    # answer in the place of the worker.
    def end_if_forked(error = nil)
      return if Process.pid == @pid

      if error.nil?
        Log.line("kirin: process #{Process.pid}: #{Trace.request_line(Log.environment)}: a " \
                 "process that the application has forked returned from the application; it ends")
      elsif !error.is_a?(SystemExit)
        Trace.log_failure(Log.environment, error)
      end
      exit!(error.is_a?(SystemExit) ? error.status : 1)
    end
  end
end
