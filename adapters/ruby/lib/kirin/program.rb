# frozen_string_literal: true

module Kirin
  # Finds the program `kirin`, which is no part of this gem.
  module Program
    # ROOT/adapters/ruby/lib/kirin/program.rb in the sources, PREFIX/share/kirin/adapters/ruby/...
    # when installed.
    ROOT = File.expand_path("../../../..", __dir__)

    # Returns the path of the program: the environment variable KIRIN_BINARY, the newer build of the
    # source tree, `bin/kirin` of the prefix in which this file is installed, or `kirin` in PATH.
    # Raises RuntimeError with the places in which there is none.
    def self.path
      named = ENV.fetch("KIRIN_BINARY", "")
      unless named.empty?
        return File.expand_path(named) if program?(named)

        raise "KIRIN_BINARY is #{named}, which is not a program"
      end

      built = %w[release debug].map { |profile| "#{ROOT}/target/#{profile}/kirin" }
      places = [*newest_first(built), File.expand_path("../../bin/kirin", ROOT), *in_path]
      places.find { |place| program?(place) } || raise(missing(built, places))
    end

    def self.program?(path)
      File.file?(path) && File.executable?(path)
    end
    private_class_method :program?

    def self.newest_first(paths)
      paths.select { |path| program?(path) }.sort_by { |path| -File.mtime(path).to_f }
    end
    private_class_method :newest_first

    def self.in_path
      ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).map { |place| File.join(place, "kirin") }
    end
    private_class_method :in_path

    def self.missing(built, places)
      <<~TEXT.chomp
        The program kirin is in none of these places:
        #{(built | places).map { |place| "  #{place}" }.join("\n")}
        Install Kirin's Debian package or its archive for Linux, or build it in Kirin's sources:
          cargo build --release -p kirin
        If it is in another place, set the environment variable KIRIN_BINARY to its path.
      TEXT
    end
    private_class_method :missing
  end
end
