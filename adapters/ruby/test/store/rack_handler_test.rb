# frozen_string_literal: true

require_relative "programs"
require "kirin/rack_handler"

# The handler for rackup and Rails.
class RackHandlerTest < ProgramTest
  # A program in the place of Kirin, which prints what it has got.
  PROGRAM = <<~SH
    #!/bin/sh
    printf '%s\n' "$@"
    echo "RUBYLIB=$RUBYLIB RUBYOPT=$RUBYOPT RACK_ENV=$RACK_ENV"
  SH

  def in_directory
    Dir.mktmpdir("kirin-rackup-") do |directory|
      File.write(File.join(directory, "config.ru"), "run ->(_) { [200, {}, []] }\n")
      program = File.join(directory, "program")
      File.write(program, PROGRAM)
      File.chmod(0o755, program)
      yield File.realpath(directory)
    end
  end

  # Returns what rackup prints, by lines, and its status.
  def rackup(directory, *arguments, **environment)
    environment = { "KIRIN_BINARY" => File.join(directory, "program"), "RUBYLIB" => LIBRARY,
                    "RUBYOPT" => nil, "RACK_ENV" => nil,
                    **environment.transform_keys(&:to_s) }
    output, status = Open3.capture2e(environment, "rackup", "-s", "kirin", *arguments,
                                     chdir: directory)
    [output.lines(chomp: true), status]
  end

  def test_options_become_those_of_kirin
    in_directory do |directory|
      lines, = rackup(directory, "-p", "5000", "-o", "127.0.0.1", "-O", "workers=3", "-E", "none",
                      "-I", "extra", "-r", "set", "-P", "pid", "config.ru")
      assert_equal ["serve", "#{directory}/config.ru", "--listen", "127.0.0.1:5000", "--workers",
                    "3", "--pid-file", "#{directory}/pid",
                    "RUBYLIB=#{directory}/extra:#{LIBRARY} RUBYOPT=-rset RACK_ENV=none"], lines
      refute File.exist?("#{directory}/pid"), "Kirin writes it"
    end
  end

  def test_addresses_are_written_as_kirin_takes_them
    { { Host: "localhost", Port: 9292 } => %w[--listen 127.0.0.1:9292],
      { Host: "::1", Port: "80" } => %w[--listen [::1]:80],
      { Port: 80 } => %w[--listen 127.0.0.1:80], {} => %w[--listen 127.0.0.1:9292],
      { listen: "unix:/run/a.sock", Port: 80 } => %w[--listen unix:/run/a.sock],
      { domain: "example.org", email: "a@example.org", Port: 80 } =>
        %w[--domain example.org --email a@example.org] }.each do |options, expected|
      assert_equal expected, Kirin::RackHandler.new(options).arguments, options
    end
  end

  def test_inherited_sockets_have_precedence
    before = ENV.to_h
    ENV["LISTEN_PID"] = Process.pid.to_s
    assert_empty Kirin::RackHandler.new({ Port: 80 }).arguments
    ENV["LISTEN_PID"] = "1"
    refute_empty Kirin::RackHandler.new({ Port: 80 }).arguments
  ensure
    ENV.replace(before)
  end

  def test_unknown_options_are_named
    in_directory do |directory|
      lines, status = rackup(directory, "-O", "Threads=0:16", "-O", "Verbose")
      refute status.success?
      assert_equal 1, lines.size, lines
      assert_match(/unknown option: Threads, Verbose\. Options for -O are workers, /, lines.first)
    end
  end

  def test_a_missing_program_is_told_with_the_places
    in_directory do |directory|
      lines, status = rackup(directory, KIRIN_BINARY: "/nowhere/kirin")
      refute status.success?
      assert_equal "rackup -s kirin: KIRIN_BINARY is /nowhere/kirin, which is not a program",
                   lines.join

      # A copy, so that the program of the sources is not beside it.
      FileUtils.cp_r(LIBRARY, directory)
      lines, status = rackup(directory, KIRIN_BINARY: "", RUBYLIB: "#{directory}/lib",
                                        PATH: without_kirin)
      refute status.success?
      assert_equal "rackup -s kirin: The program kirin is in none of these places:", lines.first
      assert_includes lines, "  #{without_kirin.split(':').first}/kirin"
      assert_match(/KIRIN_BINARY/, lines.last)
    end
  end

  # Returns PATH without the directories that have the program.
  def without_kirin
    ENV.fetch("PATH").split(":").reject { |place| File.exist?("#{place}/kirin") }.join(":")
  end

  def test_a_program_in_path_is_found
    in_directory do |directory|
      FileUtils.cp_r(LIBRARY, directory)
      FileUtils.mv("#{directory}/program", "#{directory}/kirin")
      lines, = rackup(directory, KIRIN_BINARY: nil, RUBYLIB: "#{directory}/lib",
                                 PATH: "#{directory}:#{without_kirin}")
      assert_equal ["serve", "#{directory}/config.ru"], lines.first(2)
    end
  end

  def test_an_application_without_a_file_is_refused
    [{}, { config: "config.ru", app: proc {} }, { config: "config.ru", builder: "run x" },
     { config: "/nowhere/config.ru" }].each do |options|
      _, errors = capture_io do
        assert_raises(SystemExit) { Kirin::RackHandler.run(proc {}, **options) }
      end
      assert_match(/unknown option|Kirin serves a file|no file|none of these|KIRIN_BINARY/, errors)
    end
  end

  def test_what_rails_gives_is_known
    options = { user_supplied_options: [:Port], server: "kirin", log_stdout: true, Port: 3000,
                Host: "localhost", DoNotReverseLookup: true, config: "config.ru",
                environment: "development", daemonize: nil, pid: "/tmp/x", caching: nil,
                restart_cmd: "x", early_hints: nil, AccessLog: [] }
    assert_includes Kirin::RackHandler.new(options).arguments, "127.0.0.1:3000"
  end

  # Debian has no gem rackup. Its interface is one method.
  def test_the_handler_for_rack_3_registers_itself
    in_directory do |directory|
      FileUtils.mkdir_p("#{directory}/rackup")
      File.write("#{directory}/rackup/handler.rb", <<~RUBY)
        module Rackup
          module Handler
            def self.register(name, handler)
              puts(name.inspect, handler, handler.method(:run).arity)
            end
          end
        end
      RUBY
      output, status = Open3.capture2e(RbConfig.ruby, "-w", "-I#{directory}", "-I#{LIBRARY}", "-e",
                                       'require "rackup/handler/kirin"')
      assert status.success?, output
      assert_equal [":kirin", "Rackup::Handler::Kirin", "-2"], output.lines(chomp: true)
    end
  end
end
