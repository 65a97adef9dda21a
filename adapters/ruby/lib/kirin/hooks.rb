# frozen_string_literal: true

# Code of an application that runs at the start and at the end of a worker:
#
#   Kirin.before_fork { STATISTICS.close }
#   Kirin.on_worker_boot { DATABASE.connect }
#   Kirin.on_worker_shutdown { STATISTICS.flush }
#
# The same words without `Kirin.` can be in `config/kirin.rb` beside the application. They are those
# of Puma. Blocks run in the order in which they were registered. Under another server they can be
# registered, but do not run.
module Kirin
  # The blocks that have been registered, and how the adapter runs them.
  module Hooks
    NAMES = %i[before_fork on_worker_boot on_worker_shutdown].freeze

    @blocks = NAMES.to_h { |name| [name, []] }

    class << self
      # Registers a block. Raises ArgumentError without one.
      def add(name, block)
        raise ArgumentError, "Kirin.#{name} needs a block" if block.nil?

        @blocks.fetch(name) << block
        nil
      end

      # Runs the blocks, up to the first exception: a worker without a database must not serve.
      def run(name)
        @blocks.fetch(name).each(&:call)
      end

      # Runs all blocks, also if one raises an exception. Yields each exception.
      def run_all(name)
        @blocks.fetch(name).each do |block|
          block.call
        rescue Exception => error
          yield error
        end
      end
    end
  end

  # Registers a block that the app parent calls once, when it has loaded the application and before
  # it forks workers. It does not run if each worker loads the application itself (`preload`). If it
  # raises an exception, the start fails.
  def self.before_fork(&block)
    Hooks.add(:before_fork, block)
  end

  # Registers a block that each new worker calls before it takes a request. If it raises an
  # exception, the worker ends, the log has the reason, and another worker is forked after a growing
  # pause.
  def self.on_worker_boot(&block)
    Hooks.add(:on_worker_boot, block)
  end

  # Registers a block that each worker calls when it leaves normally: after TERM, after its number
  # of requests, and for a new generation. It does not run if the worker is killed. It has the
  # request deadline; then the front kills the worker.
  def self.on_worker_shutdown(&block)
    Hooks.add(:on_worker_shutdown, block)
  end
end
