# frozen_string_literal: true

require_relative "overdue"

module Kirin
  # The work that an application does when the client has its response: the callables in
  # `rack.after_reply`, without arguments (Puma), and in `rack.response_finished`, with environment,
  # status, headers and error (Rack 3).
  class AfterResponse
    # Puts both lists into an environment.
    def self.in_environment(environment)
      new(environment, environment["rack.after_reply"] = [],
          environment["rack.response_finished"] = [])
    end

    # `replies` and `finished` are the lists. The application may have put others into the
    # environment since.
    def initialize(environment, replies, finished)
      @environment = environment
      @replies = replies
      @finished = finished
    end

    def empty?
      @replies.empty? && @finished.empty?
    end

    # Calls all, in the order in which they were added; those of `rack.response_finished` in the
    # opposite order, as Rack says. A callable may add others. `outcome` has status, headers and
    # error. Yields each exception.
    def run(outcome, &failed)
      guarded(failed) { @replies.shift.call } until @replies.empty?
      until @finished.empty?
        guarded(failed) { @finished.pop.call(@environment, *outcome) }
      end
    end

    private

    def guarded(failed)
      yield
    rescue Overdue
      raise
    rescue Exception => error
      failed.call(error)
    end
  end
end
