# frozen_string_literal: true

require_relative "interpreter"
require_relative "target_error"

module Kirin
  # The gems of an application that has a Gemfile.
  module Bundle
    # Lets the process load the gems of the Gemfile in `directory`, or of BUNDLE_GEMFILE, and no
    # others. Without one it does nothing. Raises what Bundler raises, and TargetError without
    # Bundler.
    def self.set_up(directory)
      gemfile = given || in_directory(directory)
      return if gemfile.nil?

      ENV["BUNDLE_GEMFILE"] = gemfile
      load_bundler(gemfile)
      use(gemfile)
    end

    def self.given
      named = ENV.fetch("BUNDLE_GEMFILE", "")
      named.empty? ? nil : File.expand_path(named)
    end

    def self.in_directory(directory)
      path = File.join(directory, "Gemfile")
      File.file?(path) ? path : nil
    end

    def self.load_bundler(gemfile)
      require "bundler"
    rescue ::LoadError => error
      raise TargetError, <<~TEXT
        #{gemfile} needs Bundler, which this Ruby does not have: #{error.message}
        Install it (Debian: apt-get install ruby-bundler), or move the Gemfile away.
        #{Interpreter.lines.join("\n")}
      TEXT
    end

    def self.use(gemfile)
      # `require "bundler/setup"` writes to STDERR and exits if a gem is missing. This raises.
      Bundler.setup
    rescue Bundler::GemNotFound => error
      raise TargetError, <<~TEXT
        #{error.message}
        Run `bundle install` in #{File.dirname(gemfile)}.
        #{Interpreter.lines.join("\n")}
      TEXT
    end
    private_class_method :use, :given, :in_directory, :load_bundler
  end
end
