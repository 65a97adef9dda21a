# frozen_string_literal: true

require_relative "traps"

module Kirin
  # A worker's signal handlers, which survive changes by the application.
  #
  # An application may use any signal within a request. Its handlers for TERM, QUIT, USR2 and PIPE
  # do not stay after the request. Without the worker's own handlers, the worker would end in the
  # middle of a later request.
  class WorkerSignals
    # `stop` handles TERM and QUIT, `overdue` handles USR2.
    def initialize(stop, overdue)
      @pid = Process.pid
      stop, overdue = [stop, overdue].map { |handler| only_here(handler) }
      # Ruby does nothing on PIPE by default, and programs that it starts end on it, as usual.
      @handlers = { "TERM" => stop, "QUIT" => stop, "USR2" => overdue, "PIPE" => "DEFAULT" }
    end

    # Installs the handlers.
    def install
      Traps.changed = false
      @handlers.each { |name, handler| Traps.set(name, handler) }
    end

    # Removes the handlers in a process that is not a worker, but has been forked by one.
    def give_up
      @handlers.each do |name, handler|
        before = Traps.set(name, "DEFAULT")
        Traps.set(name, before) if before != handler
      end
    end

    private

    # Returns a handler for this process. A signal may come to a process that the worker has forked
    # before that has given up the handlers. It must have its usual effect there.
    def only_here(handler)
      lambda do |number|
        next handler.call if Process.pid == @pid

        Traps.set(number, "DEFAULT")
        Process.kill(number, Process.pid)
      end
    end
  end
end
