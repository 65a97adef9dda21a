# frozen_string_literal: true

module Kirin
  # The command line of kirin-worker. It does without optparse, which is a gem (see SystemCalls).
  class Options
    # How long a request may take, in seconds, if nobody has said.
    DEADLINE_SECONDS = 60.0

    PRELOAD = %w[auto true false].freeze

    # The directories of --sendfile are not needed: an application in Ruby hands back only files
    # that it could send itself.
    attr_reader :workers, :generation, :name, :front, :deadline, :max_requests, :preload, :target

    # Raises ArgumentError with a text for people.
    def initialize(arguments)
      @workers = 1
      @generation = 1
      @name = "app"
      @front = Process.ppid
      @deadline = DEADLINE_SECONDS
      @preload = "auto"
      parse(arguments.dup)
    end

    private

    def parse(words)
      while words.first&.start_with?("--")
        option, value = words.shift.split("=", 2)
        break if option == "--"

        value = words.shift if value.nil?
        raise ArgumentError, "#{option} needs a value" if value.nil?

        set(option, value)
      end
      raise ArgumentError, "exactly one application must be given" if words.size != 1

      @target = words.first
    end

    def set(option, value)
      case option
      when "--workers" then @workers = [Integer(value, 10), 1].max
      when "--generation" then @generation = Integer(value, 10)
      when "--name" then @name = value
      when "--front" then @front = Integer(value, 10)
      when "--deadline" then @deadline = Float(value)
      when "--max-requests" then @max_requests = Integer(value, 10)
      when "--preload" then @preload = preload_of(value)
      when "--sendfile" then nil
      else raise ArgumentError, "unknown option: #{option}"
      end
    end

    def preload_of(value)
      return value if PRELOAD.include?(value)

      raise ArgumentError, "--preload must be one of #{PRELOAD.join(", ")}"
    end
  end
end
