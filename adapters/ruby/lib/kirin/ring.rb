# frozen_string_literal: true

require "rbconfig"

module Kirin
  # The compiled part of the adapter: requests and answers through memory that Kirin shares with its
  # workers.
  #
  # Without it, or with `KIRIN_RING=0` in the environment of the application, everything goes over
  # sockets, and everything else is the same. docs/worker-protocol.md describes the ring, and
  # ext/kirin_ring/kirin_ring_ruby.c has the methods of a ring.
  class Ring
    ROOT = File.expand_path("../..", __dir__)
    # The directory names the Ruby that the part was built for, since another one must not load it.
    LIBRARY = File.join(
      ROOT, "arch", RbConfig::CONFIG.values_at("ruby_version", "arch").join("-"),
      "kirin_ring.#{RbConfig::CONFIG["DLEXT"]}"
    )
    SOURCES = Dir[File.join(ROOT, "ext/kirin_ring/*.{c,h}")].freeze
    private_constant :ROOT, :LIBRARY, :SOURCES

    class << self
      # Returns whether the compiled part is there and wanted.
      def available?
        @is_loaded && wanted?
      end

      # Returns the ring that the front offers on a connection after the greeting, or nil if it
      # offers none, or if the block, which is called after each signal, is true. Waits for the
      # offer. The process gets TERM when the process `parent` ends. `constant` has what is the same
      # in all environments.
      def attach(connection, parent, constant)
        until yield
          ring = attach_to(connection.fileno, parent, constant)
          return ring unless ring == false
        end
      end

      private

      def wanted?
        ENV["KIRIN_RING"] != "0"
      end

      # Returns whether the compiled part has been loaded.
      def load
        return false unless wanted? && newer_than_sources?

        require(LIBRARY)
        true
      rescue LoadError
        false
      end

      # A part that is older than its sources could have other methods.
      def newer_than_sources?
        built = File.mtime(LIBRARY)
        SOURCES.all? { |source| File.mtime(source) <= built }
      rescue SystemCallError
        false
      end
    end

    @is_loaded = load
  end
end
