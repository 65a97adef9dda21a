# frozen_string_literal: true

require_relative "system_calls"
require_relative "threads"

module Kirin
  # Ends a process with its parent, and names it for the kernel.
  #
  # The kernel sees to that, so that it also happens while code in C runs. Where these system calls
  # are unknown, a thread looks each second who the parent is.
  module DeathSignal
    PR_SET_PDEATHSIG = 1
    PR_SET_NAME = 15
    CLOCK_MONOTONIC = 1
    SIGEV_SIGNAL = 0
    SIGEVENT_BYTES = 64

    # The most bytes of a process name, without its NUL.
    NAME_BYTES = 15

    # How many seconds more than a request a worker that has lost its parent has.
    LAST_SECONDS = 1.0

    # Seconds between two looks at the parent, without help of the kernel.
    TICK_SECONDS = 1.0

    KILL = Signal.list.fetch("KILL")
    TERM = Signal.list.fetch("TERM")

    class << self
      # Sets the name of this process in /proc/PID/comm: the first 15 bytes of `name`.
      def name_process(name)
        SystemCalls.succeeds?(:prctl, PR_SET_NAME, "#{name.byteslice(0, NAME_BYTES)}\0", 0, 0, 0)
      end

      # Runs a block in a process that is killed at once if its parent ends meanwhile.
      def killed_with_parent(parent)
        is_watched = set(KILL)
        thread = watch(parent) { Process.kill(:KILL, Process.pid) } unless is_watched
        # The parent may have ended before.
        Process.kill(:KILL, Process.pid) if Process.ppid != parent
        yield
      ensure
        is_watched ? set(0) : thread&.kill
      end

      # Lets this process get TERM when its parent ends. A request in progress may take its time.
      def end_with_parent(parent, deadline)
        if set(TERM)
          Process.kill(:TERM, Process.pid) if Process.ppid != parent
          return
        end
        watch(parent) do
          Process.kill(:TERM, Process.pid)
          kill_after(deadline + LAST_SECONDS)
        end
      end

      # Has the kernel kill this process, whose parent has ended, after the request deadline.
      def limit_life(deadline)
        kill_after(deadline + LAST_SECONDS)
      end

      private

      def set(number)
        SystemCalls.succeeds?(:prctl, PR_SET_PDEATHSIG, number, 0, 0, 0)
      end

      def watch(parent)
        thread = Thread.new do
          sleep(TICK_SECONDS) while Process.ppid == parent
          yield
        end
        thread.name = Threads::OWN
        thread.report_on_exception = false
        thread
      end

      def kill_after(seconds)
        return if start_kill_timer(seconds)

        Thread.new do
          sleep(seconds)
          Process.kill(:KILL, Process.pid)
        end
      end

      # Returns whether a timer of the kernel, which sends KILL, has been started.
      def start_kill_timer(seconds)
        event = [0, KILL, SIGEV_SIGNAL].pack("Jll").ljust(SIGEVENT_BYTES, "\0")
        timer = +"\0\0\0\0"
        return false unless SystemCalls.succeeds?(:timer_create, CLOCK_MONOTONIC, event, timer)

        # A time of 0 would stop the timer.
        nanoseconds = [(seconds * 1_000_000_000).to_i, 1].max
        limit = [0, 0, *nanoseconds.divmod(1_000_000_000)].pack("q4")
        # The last value is where the old time would go.
        SystemCalls.succeeds?(:timer_settime, timer.unpack1("l"), 0, limit, 0)
      end
    end
  end
end
