# frozen_string_literal: true

require_relative "lib/kirin/version"

Gem::Specification.new do |spec|
  spec.name = "kirin"
  spec.version = Kirin::VERSION
  spec.authors = ["The authors of Kirin"]
  spec.summary = "Runs Rack applications as workers of the Kirin web server"
  spec.description = "Kirin's adapter for Ruby, a client of its store, sessions for Rack and " \
                     "Rails, a cache for Rails and a handler for rackup. The server is another " \
                     "package."
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.0"
  # The license is outside of this directory in Kirin's sources; scripts/ruby-dist copies it.
  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "ext/**/*.{c,h,rb}", "README.md", "LICENSE"].sort
  end
  # RubyGems runs it with rake, which comes with Ruby. An extconf.rb would need make.
  spec.extensions = ["ext/kirin_ring/mkrf_conf.rb"]
  spec.metadata = { "rubygems_mfa_required" => "true" }
end
