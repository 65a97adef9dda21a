# frozen_string_literal: true

require_relative "empty_input"
require_relative "version"

module Kirin
  # The keys of Rack's environment besides those that the front sends.
  module RackEnvironment
    # The version of the specification of Rack 2. Rack 3 has none in the environment.
    RACK_2_VERSION = [1, 3].freeze

    # Returns what is the same for all requests of a worker. `errors`, `leave` and `early_hints` are
    # objects of the worker.
    def self.constant(errors:, leave:, early_hints:, is_one_of_many:)
      {
        "SERVER_SOFTWARE" => "Kirin",
        "rack.url_scheme" => "http",
        "rack.input" => EmptyInput.new,
        "rack.errors" => errors,
        "rack.multithread" => false,
        "rack.multiprocess" => is_one_of_many,
        "rack.run_once" => false,
        "rack.early_hints" => early_hints,
        "kirin.leave" => leave,
        **of_version
      }.freeze
    end

    # Completes the names and values of a request. `constant` comes from the method above.
    def self.complete(environment, constant)
      environment.update(constant)
      environment["HTTP_VERSION"] = environment["SERVER_PROTOCOL"]
      environment["rack.url_scheme"] = "https" if environment["HTTPS"] == "on"
      # Rack has other names for them, and an application must not see two values.
      environment.delete("HTTP_CONTENT_TYPE")
      environment.delete("HTTP_CONTENT_LENGTH")
      # Rack demands one of both. Both are empty for `OPTIONS *`.
      environment["PATH_INFO"] = "/" if
        environment["PATH_INFO"].empty? && environment["SCRIPT_NAME"].empty?
    end

    # `rack.hijack?` means full hijacking in Rack 2, which a usual request does not have (HandOver).
    # In Rack 3 it means partial hijacking.
    def self.of_version
      if defined?(::Rack.release) && ::Rack.release.to_i < 3
        { "rack.version" => RACK_2_VERSION, "rack.hijack?" => false }
      else
        { "rack.hijack?" => true }
      end
    end
    private_class_method :of_version
  end
end
