# frozen_string_literal: true

require_relative "bundle"
require_relative "hook_file"
require_relative "interpreter"
require_relative "target_error"

module Kirin
  # Loads the application that a file has.
  #
  # `config.ru`, or another file `*.ru`, is for Rack::Builder. Another file is Ruby code: the
  # application is its last value if that responds to `call`, or else the constant `App` or
  # `Application`, or the application of a classic Sinatra program.
  module Loading
    CONSTANTS = %i[App Application].freeze

    # What Rack::Builder says of a file without an application.
    MISSING_RUN = "missing run or map statement"

    class << self
      # Returns the application. Raises TargetError if there is none, and any exception that the
      # application raises.
      def load(path)
        path = File.expand_path(path)
        raise TargetError, "#{path}: there is no such file" unless File.exist?(path)
        raise TargetError, "#{path}: this is a directory" if File.directory?(path)

        directory = File.dirname(path)
        choose_encoding
        choose_environment(directory)
        Bundle.set_up(directory)
        HookFile.load(directory)
        path.end_with?(".rb") ? from_ruby(path) : from_rackup(path)
      end

      # Loads the application, and then the files of a worker. They need libraries that are gems,
      # such as stringio. The application, or its Gemfile, decides about the versions.
      def load_for_worker(path)
        application = load(path)
        require_relative "worker"
        application
      end

      private

      # Without a locale, as in most services, Ruby would read files as ASCII.
      def choose_encoding
        # Ruby warns about a change if it shows all warnings.
        verbose, $VERBOSE = $VERBOSE, nil
        is_without_locale = Encoding.default_external == Encoding::US_ASCII
        Encoding.default_external = Encoding::UTF_8 if is_without_locale
      ensure
        $VERBOSE = verbose
      end

      # Nobody serves visitors in development by mistake.
      def choose_environment(directory)
        return if %w[RACK_ENV RAILS_ENV APP_ENV].any? { |name| ENV.key?(name) }

        ENV["RACK_ENV"] = "production"
        is_rails = File.file?(File.join(directory, "config/application.rb"))
        ENV["RAILS_ENV"] = "production" if is_rails
      end

      def from_rackup(path)
        load_rack(path)
        application = Rack::Builder.parse_file(path)
        # Rack 2 returns the options of the first line, too.
        application = application.first if application.is_a?(Array)
        return application if application.respond_to?(:call)

        raise TargetError, "#{path}: `run` has been given no application, but #{application.class}"
      rescue RuntimeError => error
        raise unless error.message == MISSING_RUN

        raise TargetError, "#{path}: #{error.message}"
      end

      def load_rack(path)
        require "rack"
      rescue ::LoadError => error
        raise unless error.path == "rack"

        raise TargetError, <<~TEXT
          #{path} needs Rack, which cannot be loaded: #{error.message}
          Name the gem rack in the Gemfile, or install it (Debian: apt-get install ruby-rack).
          #{Interpreter.lines.join("\n")}
        TEXT
      end

      def from_ruby(path)
        # What stands behind is data, as in a file that Ruby runs.
        code = File.read(path, encoding: "UTF-8").sub(/^__END__(?:\r?\n.*)?\z/m, "")
        value = eval(code, TOPLEVEL_BINDING.dup, path, 1)
        application = [value, *constants].find { |one| one.respond_to?(:call) }
        return application if application

        raise TargetError, "#{path}: there is no application. The last value of the file must " \
                           "respond to `call`, or else the constant App or Application"
      end

      def constants
        found = CONSTANTS.map { |name| Object.const_get(name) if Object.const_defined?(name) }
        # A classic program of Sinatra has no value of its own.
        found << (defined?(::Sinatra::Application) && ::Sinatra::Application)
      end
    end
  end
end
