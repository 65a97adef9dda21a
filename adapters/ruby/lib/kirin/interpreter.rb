# frozen_string_literal: true

require "rbconfig"

module Kirin
  # Says which Ruby runs, and where it looks for gems.
  module Interpreter
    # Returns lines for people.
    def self.lines
      lines = ["The interpreter is #{RbConfig.ruby}, Ruby #{RUBY_VERSION}."]
      gems = defined?(Gem) ? "The gem path is #{Gem.path.join(":")}" : "It runs without RubyGems."
      lines << gems
      gemfile = ENV.fetch("BUNDLE_GEMFILE", "")
      lines << "Only gems of #{gemfile} can be loaded." unless gemfile.empty?
      lines
    end
  end
end
