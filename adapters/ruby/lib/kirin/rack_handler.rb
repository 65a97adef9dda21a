# frozen_string_literal: true

require "rbconfig"
require_relative "program"

module Kirin
  # What `rackup -s kirin` and `rails server -u kirin` call. This process becomes `kirin serve`.
  #
  # Kirin loads the file of the application itself, once more, so that it can load it again for a
  # new generation. Middleware that rackup adds around an application in development is left out.
  class RackHandler
    # Options for `-O`, and what they are for.
    OPTIONS = {
      "workers" => "the number of worker processes (default: 5)",
      "listen" => "HOST:PORT or unix:PATH, instead of -o and -p",
      "domain" => "serve https with a certificate of Let's Encrypt for this name",
      "email" => "with domain: where the authority may write"
    }.freeze

    # What rackup and Rails give to each handler.
    OF_CALLERS = %i[
      AccessLog DoNotReverseLookup Host Port Silent app caching config daemonize debug early_hints
      environment include log_stdout pid quiet require restart_cmd server user_supplied_options warn
    ].freeze

    DEFAULT_PORT = 9292

    # Becomes Kirin. If that is not possible, ends the process with the reason.
    def self.run(_app, **options)
      new(options).run
    rescue ArgumentError, RuntimeError, SystemCallError => e
      abort("rackup -s kirin: #{e.message}")
    end

    # For `rackup -s kirin -h`.
    def self.valid_options
      {
        "Host=HOST" => "address to listen on (default: 127.0.0.1)",
        "Port=PORT" => "port to listen on (default: #{DEFAULT_PORT})"
      }.merge(OPTIONS.to_h { |name, text| ["#{name}=VALUE", text] })
    end

    # Raises ArgumentError for an option that is not known.
    def initialize(options)
      unknown = options.keys.map(&:to_sym) - OF_CALLERS - OPTIONS.keys.map(&:to_sym)
      unless unknown.empty?
        raise ArgumentError,
              "unknown option: #{unknown.join(', ')}. Options for -O are " \
              "#{OPTIONS.keys.join(', ')}; a kirin.toml has all others (kirin serve --print-config)"
      end

      @options = options
    end

    # Returns only by an exception.
    def run
      command = [Program.path, "serve", file, *arguments]
      # rackup has written it. Kirin removes it at the end.
      File.delete(@options[:pid]) if @options[:pid] && File.exist?(@options[:pid])
      Process.exec(environment, *command, close_others: false)
    end

    # Returns the arguments for `kirin serve` behind the file.
    def arguments
      # Sockets of systemd and start_server have precedence, because rackup always gives a port.
      addresses = inherits_sockets? || @options[:domain] ? [] : ["--listen", address]
      named = { workers: "--workers", pid: "--pid-file", domain: "--domain", email: "--email" }
      addresses + named.flat_map do |name, argument|
        value = @options[name]
        value.nil? ? [] : [argument, value.to_s]
      end
    end

    private

    def inherits_sockets?
      ENV.key?("SERVER_STARTER_PORT") || ENV["LISTEN_PID"] == Process.pid.to_s
    end

    def address
      return @options[:listen].to_s if @options[:listen]

      host = @options[:Host] || "127.0.0.1"
      host = "127.0.0.1" if host == "localhost"
      host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
      "#{host}:#{@options[:Port] || DEFAULT_PORT}"
    end

    # Returns the path of the file that Kirin loads.
    def file
      name = @options[:config]
      if name.nil? || @options[:app] || @options[:builder]
        raise ArgumentError, "Kirin serves a file, such as config.ru (or kirin serve FILE.rb)"
      end

      # A process that has gone into the background is in `/`.
      path = File.expand_path(name)
      path = File.expand_path(name, ENV.fetch("PWD", ".")) unless File.file?(path)
      File.file?(path) ? path : raise(ArgumentError, "there is no file #{name}")
    end

    # rackup's own options for Ruby, which the workers need as well.
    def environment
      flags = Array(@options[:require]).map { |library| "-r#{library}" }
      flags << "-w" if @options[:warn]
      flags << "-d" if @options[:debug]
      directories = Array(@options[:include]).map { |directory| File.expand_path(directory) }
      { "RUBYOPT" => joined(ENV.fetch("RUBYOPT", ""), flags, " "),
        "RUBYLIB" => joined(ENV.fetch("RUBYLIB", ""), directories, File::PATH_SEPARATOR),
        "PATH" => joined(ENV.fetch("PATH", ""), directory_of_ruby, File::PATH_SEPARATOR) }
    end

    # Kirin runs the `ruby` in PATH. It must be the one that runs rackup.
    def directory_of_ruby
      present = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
                   .map { |place| File.join(place, "ruby") }.find { |path| File.executable?(path) }
      is_same = present && File.realpath(present) == File.realpath(RbConfig.ruby)
      is_same ? [] : [RbConfig::CONFIG["bindir"]]
    end

    # Returns nil, for a variable that is not set, if there is nothing.
    def joined(given, added, separator)
      all = [*added, *given.split(separator)]
      all.join(separator) unless all.empty?
    end
  end
end
