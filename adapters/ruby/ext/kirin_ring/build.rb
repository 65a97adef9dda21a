# frozen_string_literal: true

require "fileutils"
require "rbconfig"

# Builds the compiled part of the adapter for the Ruby that runs this, if its sources are newer:
# arch/VERSION-ARCHITECTURE/kirin_ring.so. lib/kirin/ring.rb looks there.
#
# It needs a C compiler and the headers of Ruby. mkmf needs make, too, which a machine without a
# compiler does not have, and where it is missing a gem cannot be installed.
module KirinRingBuild
  CONFIG = RbConfig::CONFIG

  SOURCES = Dir[File.join(__dir__, "*.c")].sort.freeze
  HEADERS = Dir[File.join(__dir__, "*.h")].freeze
  DIRECTORY = File.expand_path("../../arch/#{CONFIG["ruby_version"]}-#{CONFIG["arch"]}", __dir__)
  LIBRARY = File.join(DIRECTORY, "kirin_ring.#{CONFIG["DLEXT"]}")

  FLAGS = %w[-O2 -g -fPIC -shared -Wall -Wextra -fvisibility=hidden].freeze

  class << self
    # Returns why there is no such part then, or nil.
    def run
      return if new?
      return "this is no CRuby on Linux" unless
        RUBY_ENGINE == "ruby" && CONFIG["target_os"].start_with?("linux")
      return "the headers of Ruby (ruby-dev) are missing" unless
        File.exist?(File.join(CONFIG["rubyhdrdir"], "ruby.h"))
      return "a C compiler is missing" if compiler.nil?

      "it cannot be compiled" unless compile
    end

    private

    def new?
      built = File.mtime(LIBRARY)
      [*SOURCES, *HEADERS, __FILE__].all? { |path| File.mtime(path) <= built }
    rescue SystemCallError
      false
    end

    # The compiler that has built Ruby may have another name here.
    def compiler
      [ENV["CC"], CONFIG["CC"], "cc"].compact.map(&:split).find { |name, *| name && there?(name) }
    end

    def there?(name)
      directories = name.include?("/") ? [""] : ENV["PATH"].to_s.split(":")
      directories.any? { |path| File.executable?(File.join(path, name)) }
    end

    # A worker that runs must never see a file that is half written.
    def compile
      FileUtils.mkdir_p(DIRECTORY)
      unfinished = "#{LIBRARY}.#{Process.pid}"
      places = CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir")
      headers = places.flat_map { |path| ["-isystem", path] }
      system(*compiler, *FLAGS, *headers, "-I#{__dir__}", *SOURCES, "-o", unfinished) &&
        File.rename(unfinished, LIBRARY)
    ensure
      FileUtils.rm_f(unfinished)
    end
  end
end

if $PROGRAM_NAME == __FILE__ && (reason = KirinRingBuild.run)
  warn("build-ruby-ring: #{reason}: workers in Ruby get their requests over sockets")
end
