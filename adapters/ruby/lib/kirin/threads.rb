# frozen_string_literal: true

module Kirin
  # The threads that an application has started. A forked process has none of them.
  module Threads
    # A library sets this for a thread that it starts again in a forked process. Rails does so.
    FORK_SAFE = :fork_safe
    # The library `timeout` starts its thread again, too.
    TIMEOUT = /\ATimeout/.freeze

    # The file of a thread of concurrent-ruby 1.1, which Rails 6 needs. It frees what threads have
    # left behind that have ended, and a forked process works without it.
    CONCURRENT = "concurrent/atomic/ruby_thread_local_var.rb"
    # The name of the thread that watches the parent (DeathSignal).
    OWN = "kirin"

    class << self
      # Returns what the log says about them, in a list, which is empty if there are none.
      def lost_by_fork
        lost = of_application
        return [] if lost.empty?

        names = lost.map { |thread| thread.name || thread.inspect }.join(", ")
        threads = lost.size == 1 ? "a thread" : "#{lost.size} threads"
        ["has started #{threads}, which a forked process does not have: #{names}"]
      end

      # Returns the threads that may run code of the application, besides the present one.
      def of_application
        Thread.list.reject do |thread|
          thread == Thread.main || thread.thread_variable_get(FORK_SAFE) ||
            [OWN, TIMEOUT].any? { |name| name === thread.name } ||
            thread.inspect.include?(CONCURRENT)
        end
      end
    end
  end
end
