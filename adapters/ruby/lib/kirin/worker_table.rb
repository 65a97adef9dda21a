# frozen_string_literal: true

module Kirin
  # The workers of an app parent, and when the next one may be forked. Times are in seconds.
  class WorkerTable
    # A worker that ends sooner than this after its fork has died "at start".
    SHORT_LIFE_SECONDS = 1.0

    # The shortest and the longest pause between forks when workers keep dying at start.
    SHORTEST_PAUSE_SECONDS = 0.1
    LONGEST_PAUSE_SECONDS = 5.0
    MOST_DOUBLINGS = 6

    # How many workers there are to be.
    attr_reader :wanted

    def initialize(wanted)
      @wanted = wanted
      # The number of a worker and the time of its fork, by its process id.
      @alive = {}
      @short_lives = 0
      @fork_after = 0.0
    end

    # Keeps one more worker, or one less, but at least one.
    def resize(difference)
      @wanted = [@wanted + difference, 1].max
    end

    def pids
      @alive.keys
    end

    def empty?
      @alive.empty?
    end

    # Returns the lowest number that no worker has, or nil if there are enough.
    def missing
      taken = @alive.values.map(&:first)
      (1..@wanted).find { |number| !taken.include?(number) }
    end

    # Returns the process ids of workers too many.
    def surplus
      @alive.select { |_, (number, _)| number > @wanted }.keys
    end

    # Returns how long the next fork must wait.
    def pause
      [@fork_after - now, 0].max
    end

    def add(pid, number)
      @alive[pid] = [number, now]
    end

    # Takes a worker out that has ended with this status of wait(2). Returns whether there was one.
    def remove(pid, status)
      _, begun = @alive.delete(pid)
      return false if begun.nil?

      if now - begun >= SHORT_LIFE_SECONDS
        @short_lives = 0
      elsif status != 0
        # Status 0: the worker left normally, for example after its number of requests, however soon
        # that was.
        @short_lives += 1
        back_off if @short_lives > @wanted
      end
      true
    end

    # Delays the next fork. Every worker may die young once; then the pause doubles.
    def back_off
      doublings = (@short_lives - @wanted).clamp(0, MOST_DOUBLINGS)
      @fork_after = now + [SHORTEST_PAUSE_SECONDS * 2**doublings, LONGEST_PAUSE_SECONDS].min
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
