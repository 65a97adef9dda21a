# frozen_string_literal: true

require_relative "../kirin"
require_relative "active_record_connections"
require_relative "control_channel"
require_relative "death_signal"
require_relative "fork_guard"
require_relative "load_error_text"
require_relative "loading"
require_relative "log"
require_relative "news"
require_relative "open_descriptors"
require_relative "options"
require_relative "restart"
require_relative "ring"
require_relative "standard_streams"
require_relative "threads"
require_relative "traps"
require_relative "worker_process"
require_relative "worker_table"

module Kirin
  # Loads an application once, forks its workers, and replaces those that end.
  #
  # One such process runs for each generation of an application. It reports each event to the front
  # over the control channel, one line each (docs/worker-protocol.md).
  class AppParent
    # Seconds between two checks whether the front is still there.
    TICK_SECONDS = 1.0

    # Seconds between two signals to workers that must end. A worker may have been between the check
    # of its flag and its next read.
    REPEAT_SECONDS = 0.2

    # A faster stop may follow a slower one.
    HASTE = { "QUIT" => 1, "TERM" => 2, "INT" => 3, "KILL" => 4 }.freeze
    TO_END = %w[TERM QUIT INT].freeze

    # The signals that the application decides about in workers, and what they do if it does not.
    FOR_APPLICATION = {
      "CHLD" => "DEFAULT", "INT" => "SYSTEM_DEFAULT", "TTIN" => "DEFAULT", "TTOU" => "DEFAULT"
    }.freeze

    # Runs the command line of kirin-worker. Returns the exit status.
    def self.main(arguments)
      # The command is read from the kernel, before the process gets another name.
      restart = Restart.new(arguments)
      options = options_of(arguments)
      return 2 if options.nil?

      # The application must not take our options for its own.
      ARGV.clear
      new(options, restart).run
    end

    def self.options_of(arguments)
      Options.new(arguments)
    rescue ArgumentError => error
      warn("kirin-worker: #{error.message}")
      nil
    end
    private_class_method :options_of

    def initialize(options, restart)
      @options = options
      @restart = restart
      @workers = WorkerTable.new(options.workers)
      # The signals that have arrived: process ids and names.
      @noted = []
      @handler = ->(number) { note(number) }
      @application_handlers = {}
    end

    # Returns the exit status.
    def run
      DeathSignal.name_process("kirin #{@options.name}")
      Process.setproctitle("kirin #{@options.name} app parent")
      listener, control = StandardStreams.take_channels
      @listener = listener
      @control = ControlChannel.new(control)
      @wake_read, @wake_write = IO.pipe
      Traps.notice
      # Until the application is loaded, only signals to end matter.
      TO_END.each { |name| Traps.set(name, @handler) }
      ForkGuard.notice
      ForkGuard.guard { give_up_channels }
      return 1 if @options.preload != "false" && !load_in_parent

      take_process_back
      return 1 if @application.nil? && !start_first_worker

      @control.report("ready") if @stopping.nil?
      keep_workers
      wait_for_workers
      remove_socket if front_gone?
      0
    end

    private

    def keep_workers
      while @stopping.nil?
        take_signals
        reap
        stop("TERM") if front_gone?
        fork_missing if @stopping.nil?
        dismiss_surplus
        next unless @stopping.nil?

        pause = @workers.missing ? @workers.pause : TICK_SECONDS
        wait([pause, TICK_SECONDS].min)
      end
    end

    # ---------------------------------------------------------------- the process

    # Undoes changes by the application that would prevent the parent's work.
    def take_process_back
      FOR_APPLICATION.each do |name, default|
        before = Traps.set(name, @handler)
        @application_handlers[name] = before if before.is_a?(Proc) && before != @handler
        @application_handlers[name] ||= before == "IGNORE" ? before : default
      end
      TO_END.each { |name| Traps.set(name, @handler) }
      Traps.set("PIPE", "DEFAULT")
    end

    # Takes handlers and channels away from a process that the application has forked. Otherwise
    # TERM would not end it, and it would keep the control channel open.
    def give_up_channels
      ForkGuard.guard { nil }
      TO_END.each do |name|
        before = Traps.set(name, "DEFAULT")
        Traps.set(name, before) if before != @handler
      end
      [@control, @listener].each(&:close)
      # A signal that has come before has its usual effect now.
      @noted.each { |pid, name| Process.kill(name, pid) if pid == Process.pid }
    end

    def note(number)
      @noted << [Process.pid, Signal.signame(number)]
      @wake_write.write_nonblock("\0", exception: false)
    rescue IOError, SystemCallError
      nil
    end

    def take_signals
      until @noted.empty?
        pid, name = @noted.shift
        next if pid != Process.pid

        case name
        when "TTIN" then resize(1)
        when "TTOU" then resize(-1)
        else stop(name) if HASTE.key?(name)
        end
      end
    end

    # Waits until a signal arrives, the pipe has something to read, or the time is over.
    def wait(seconds, *pipes)
      IO.select([@wake_read, *pipes], nil, nil, seconds)
      @wake_read.read_nonblock(512, exception: false)
    end

    def front_gone?
      Process.ppid != @options.front
    end

    # Removes the socket and its directory, which a front that is killed cannot do.
    def remove_socket
      require "socket"
      path = UNIXServer.for_fd(@listener.fileno).tap { |one| one.autoclose = false }.path
      File.unlink(path)
      Dir.rmdir(File.dirname(path))
    rescue SystemCallError, IOError, LoadError
      nil
    end

    # ---------------------------------------------------------------- loading

    # Loads the application. Returns false if that is impossible, and has reported why.
    def load_in_parent
      before = OpenDescriptors.opened
      application = DeathSignal.killed_with_parent(@options.front) do
        Loading.load_for_worker(@options.target)
      end
      Hooks.run(:before_fork)
      ActiveRecordConnections.close
      if @options.preload == "auto"
        shared = OpenDescriptors.not_to_be_shared(before).map { |what| "has opened #{what}" }
        shared += Threads.lost_by_fork
        return cannot_load(load_again(shared)) unless shared.empty?
      end
      @application = application
      warm_up
      true
    rescue Exception => error
      cannot_load(LoadErrorText.of(error))
    end

    # Starts this process again, so that each worker loads the application itself.
    def load_again(shared)
      name = @options.name
      shared.each do |what|
        Log.line("kirin: #{name}: while it was loaded, the application #{what}")
      end
      Log.line("kirin: #{name}: workers cannot share this: each loads the application itself " \
               "(preload in docs/ruby.md)")
      @restart.without_preloading(@listener, @control.stream, Log.stream)
    end

    # Kirin logs the reason.
    def cannot_load(reason)
      @control.report("failed", reason)
      false
    end

    # The workers share what is there now. The collector would write into each new object.
    def warm_up
      return Process.warmup if Process.respond_to?(:warmup)

      # An object is old when it has survived three collections. Old versions of compiled libraries
      # do not bear GC.compact.
      3.times { GC.start }
    end

    # Has the first worker load the application. The others follow. Returns false if it cannot, and
    # has reported why.
    def start_first_worker
      read, write = IO.pipe
      fork_worker(1, write)
      write.close
      news = read_news(read)
      read.close
      return true if news == News::STARTED || @stopping

      news.force_encoding(Encoding::UTF_8)
      cannot_load(news.empty? ? "the worker that was to load the application has ended" : news)
    rescue SystemCallError => error
      cannot_load("cannot fork: #{error.message}")
    end

    def read_news(pipe)
      news = String.new
      until news.end_with?(News::ENDING)
        take_signals
        stop("TERM") if front_gone?
        break if @stopping

        wait(TICK_SECONDS, pipe)
        part = pipe.read_nonblock(64 * 1024, exception: false)
        break if part.nil?

        news << part if part.is_a?(String)
      end
      news.delete_suffix(News::ENDING)
    end

    # ---------------------------------------------------------------- workers

    def fork_missing
      while (number = @workers.missing) && @workers.pause.zero?
        begin
          fork_worker(number)
        rescue SystemCallError => error
          Log.line("kirin: #{@options.name}: cannot fork: #{error.message}")
          @workers.back_off
        end
      end
    end

    # The worker writes to the pipe `news` whether it could load the application.
    def fork_worker(number, news = nil)
      parent = Process.pid
      pid = ForkGuard.fork_own do
        @control.close
        process = WorkerProcess.new(
          @options, @listener, @application, @application_handlers, @workers.wanted > 1
        )
        exit(process.run(number, parent, News.new(news)) { told_to_leave? })
      end
      @workers.add(pid, number)
      @control.report("started", pid)
    end

    # Returns whether this process, a new worker, has got a signal to leave.
    def told_to_leave?
      [@wake_read, @wake_write].each(&:close)
      @noted.any? { |pid, name| pid == Process.pid && %w[TERM QUIT].include?(name) }
    end

    # Adds or removes one worker. The front waits for the answer before the next signal.
    def resize(difference)
      @workers.resize(difference)
      @control.report("workers", @workers.wanted)
    end

    # Sends TERM to workers too many. This repeats in each tick, as in wait_for_workers.
    def dismiss_surplus
      signal("TERM", @workers.surplus)
    end

    # Asks for each worker. The question for any process finds none while another thread waits for a
    # process (Process.detach).
    def reap
      @workers.pids.each do |pid|
        status = status_of(pid)
        @control.report("exited", pid, status) if status && @workers.remove(pid, status)
      end
    end

    # Returns the status of wait(2) of a worker, or nil if it has not ended.
    def status_of(pid)
      Process.wait2(pid, Process::WNOHANG)&.last&.to_i
    rescue Errno::ECHILD
      # Code of the application has waited for it.
      0
    end

    def stop(name)
      @stopping = name if @stopping.nil? || HASTE[name] > HASTE[@stopping]
    end

    # Waits until all workers have ended. The front limits this time while it exists.
    def wait_for_workers
      gone_since = nil
      loop do
        take_signals
        reap
        return if @workers.empty?

        if front_gone?
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          gone_since ||= now
          stop(now - gone_since > @options.deadline ? "KILL" : "TERM")
        end
        # QUIT is only for this process.
        signal(@stopping, @workers.pids) if @stopping != "QUIT"
        wait(REPEAT_SECONDS)
      end
    end

    def signal(name, pids)
      pids.each do |pid|
        Process.kill(name, pid)
      rescue SystemCallError
        # It has ended.
        next
      end
    end
  end
end
