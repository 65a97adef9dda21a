# frozen_string_literal: true

require_relative "death_signal"
require_relative "hooks"
require_relative "load_error_text"
require_relative "loading"
require_relative "log"
require_relative "scheduling"
require_relative "trace"
require_relative "traps"

module Kirin
  # The life of a worker process, from its fork to its end. Worker serves the requests.
  class WorkerProcess
    # Ends a worker that cannot load the application, and has said why.
    CannotLoad = Class.new(StandardError)
    private_constant :CannotLoad

    # `application` is nil if the worker must load it. `handlers` are those of signals that the
    # application decides about.
    def initialize(options, listener, application, handlers, is_one_of_many)
      @options = options
      @listener = listener
      @application = application
      @handlers = handlers
      @is_one_of_many = is_one_of_many
    end

    # Serves until this process must end. Returns its exit status. The block returns whether a
    # signal to leave has come before the worker had its handlers.
    def run(number, parent, news, &leaves)
      @handlers.each { |name, handler| Traps.set(name, handler) }
      Scheduling.give_way
      name_process(number)
      load(parent, news) if @application.nil?
      news.tell
      # The application may have seeded the generator while it was loaded. No two workers may draw
      # the same numbers.
      srand
      serve(Worker.new(@application, @listener, parent, @options, @is_one_of_many), &leaves)
    rescue CannotLoad
      1
    rescue Exception => error
      log(error)
      1
    ensure
      # The parent sends TERM repeatedly. It must not look like a violent end.
      %w[TERM QUIT].each { |signal| Traps.set(signal, proc {}) }
    end

    private

    def name_process(number)
      suffix = " #{number}"
      room = DeathSignal::NAME_BYTES - suffix.bytesize
      DeathSignal.name_process("#{"kirin #{@options.name}".byteslice(0, room).scrub("")}#{suffix}")
      Process.setproctitle("kirin #{@options.name} worker #{number}")
    end

    # Loads the application. Ends this process if that is impossible.
    def load(parent, news)
      # Until the application is loaded, no request waits for this worker.
      %w[TERM QUIT].each { |name| Traps.set(name, "SYSTEM_DEFAULT") }
      @application = DeathSignal.killed_with_parent(parent) do
        Loading.load_for_worker(@options.target)
      end
    rescue Exception => error
      news.tell(LoadErrorText.of(error))
      raise CannotLoad
    end

    def serve(worker)
      worker.prepare
      worker.stop if yield
      Hooks.run(:on_worker_boot)
      worker.run
      0
    rescue Exception => error
      log(error)
      1
    ensure
      Hooks.run_all(:on_worker_shutdown) { |error| log(error, "on_worker_shutdown: ") }
    end

    def log(error, start = "")
      Log.line("kirin: worker #{Process.pid}: #{start}#{Trace.text(error)}")
    end
  end
end
