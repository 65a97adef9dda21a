# frozen_string_literal: true

require "minitest/autorun"
require_relative "fake_front"

# How an application is loaded, and what is said if it cannot be.
class LoadingTest < Minitest::Test
  # Returns what an application answers that shows the value of an expression.
  def shown(expression, **options)
    FakeFront.run("run ->(env) { [200, {}, [(#{expression}).inspect]] }", **options) do |front|
      front.ready
      return front.get("/").body
    end
  end

  # Returns why an application cannot be loaded.
  def failure(program, **options)
    FakeFront.run(program, **options) do |front|
      line = front.control_line
      assert_match(/\Afailed /, line, front.log)
      assert_nil front.control_line unless options[:preload] == "false"
      assert_equal 1, front.wait.exitstatus
      return line.delete_prefix("failed ").gsub(/\\[n\\]/) { |two| two == "\\n" ? "\n" : "\\" }
    end
  end

  def test_ruby_files_have_their_application_in_the_last_value_or_a_constant
    {
      "->(env) { [200, {}, ['value']] }" => "value",
      "class App\n def self.call(env) = [200, {}, ['constant']]\nend\nnil" => "constant",
      "Application = proc { [200, {}, ['long']] }\nputs 'x'" => "long",
      "# frozen_string_literal: true\nproc { [200, {}, ['a'.frozen?.inspect]] }" => "true",
      "proc { [200, {}, [__FILE__ == File.join(__dir__, 'app.rb') ? 'file' : 'none']] }" => "file",
      "proc { [200, {}, ['data']] }\n__END__\nthis is ( no code" => "data",
      "require_relative 'other'\nproc { [200, {}, [OTHER]] }" => "other",
      "x = proc { [200, {}, ['é'.encoding.to_s]] }" => "UTF-8"
    }.each do |program, text|
      files = { "other.rb" => "OTHER = 'other'" }
      FakeFront.run(program, target: "app.rb", files: files) do |front|
        front.ready
        assert_equal text, front.get("/").body, program
      end
    end
  end

  def test_a_rackup_file_has_middleware_and_mounted_applications
    program = <<~'RUBY'
      #\ -s puma
      use Rack::ContentType, "text/x"
      map("/a") { run ->(env) { [200, {}, [env.values_at("SCRIPT_NAME", "PATH_INFO").inspect]] } }
      run ->(env) { [200, {}, ["root"]] }
    RUBY
    FakeFront.run(program) do |front|
      front.ready
      response = front.get("/a/b")
      assert_equal ['["/a", "/b"]', "text/x"], [response.body, response["content-type"]]
      assert_equal "root", front.get("/").body
    end
  end

  def test_files_without_an_application_say_so
    assert_match(/app.rb: there is no application. The last value/, failure("5", target: "app.rb"))
    assert_match(%r{\A/.*/config.ru: missing run or map statement\z}, failure("# nothing"))
    assert_match(/`run` has been given no application, but Integer/, failure("run 5"))
    Dir.mktmpdir do |directory|
      FakeFront.run("", target: "config.ru") do |front|
        front.control_line
        File.unlink(File.join(front.directory, "config.ru"))
        words = ["--front", Process.pid.to_s, "--", File.join(directory, "none.ru")]
        output = start_alone(words)
        assert_match(/none.ru: there is no such file/, output)
        assert_match(/this is a directory/, start_alone([*words.first(3), directory]))
      end
    end
  end

  # Returns what a parent reports that is started with these words.
  def start_alone(words)
    Dir.mktmpdir do |directory|
      listener = UNIXServer.new(File.join(directory, "socket"))
      read, write = IO.pipe
      pid = spawn(RbConfig.ruby, FakeFront::PROGRAM, *words, in: listener, out: write)
      [listener, write].each(&:close)
      Process.wait(pid)
      return read.read
    end
  end

  def test_exceptions_are_told_with_the_places_in_the_applications_own_files
    models = <<~'RUBY'
      def connect
        raise ArgumentError, "no such\ntable \\"
      end
      [1].each { connect }
    RUBY
    text = failure("require_relative 'models'\nrun Models", files: { "models.rb" => models })
    assert_match(/\Ano such \(ArgumentError\)\ntable \\\n  .*models.rb:2:in `connect'\n/, text)
    assert_match(/^  .*models.rb:4/, text)
    refute_match(%r{rack/builder|lib/kirin}, text)
    assert_match(/config.ru:.*syntax error/m, failure("run (((("))
    assert_match(/\Aexit \(SystemExit\)/, failure("exit(3)"))
    assert_match(/caused by: first/, failure("begin; raise 'first'; rescue; raise 'second'; end"))
    silent = failure("raise Class.new(StandardError) { def message = raise }")
    assert_match(/\A#<Class:.*>\n  .*config.ru:1/, silent)
    assert_operator failure("raise 'x' * 100_000").bytesize, :<, 8000
  end

  def test_a_missing_library_is_told_with_the_interpreter
    text = failure("require 'nowhere_to_be_found'")
    assert_match(/\Acannot load such file -- nowhere_to_be_found \(LoadError\)\n  .*ru:1/, text)
    assert_match(/The interpreter is #{RbConfig.ruby}, Ruby #{RUBY_VERSION}\.\nThe gem path/, text)
  end

  def test_rack_that_is_missing_is_told
    text = failure("run ->(_) {}", environment: { "RUBYOPT" => "--disable-gems" })
    assert_match(/config.ru needs Rack, which cannot be loaded/, text)
    options = { target: "app.rb", environment: { "RUBYOPT" => "--disable-gems" } }
    FakeFront.run("->(_) { [200, {}, ['alone']] }", **options) do |front|
      front.ready
      assert_equal "alone", front.get("/").body
    end
  end

  def test_a_gemfile_decides_which_gems_there_are
    gemfile = "source 'https://rubygems.org'\ngem 'rack'\n"
    found = "[defined?(Bundler) && true, Gem.loaded_specs.key?('rack')]"
    assert_equal "[true, true]", shown(found, files: { "Gemfile" => gemfile })
    assert_equal "[nil, true]", shown("[defined?(Bundler) && true, true]")
    text = failure("run 5", files: { "Gemfile" => "#{gemfile}gem 'nowhere_to_be_found'" })
    assert_match(%r{nowhere_to_be_found.*\nRun `bundle install` in /tmp/.*\nThe interpreter}m, text)
    text = failure("require 'sinatra'", files: { "Gemfile" => gemfile })
    assert_match(/cannot load such file -- sinatra/, text)
    assert_match(%r{Only gems of /.*/Gemfile can be loaded}, text)
  end

  def test_bundler_that_is_missing_is_told
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "bundler.rb"), "raise LoadError, 'no bundler'")
      text = failure("run 5", files: { "Gemfile" => "" }, environment: { "RUBYLIB" => directory })
      assert_match(%r{\A/.*/Gemfile needs Bundler, which this Ruby .*: no bundler\n}, text)
      assert_match(/apt-get install ruby-bundler/, text)
    end
  end

  def test_the_adapter_chooses_no_version_of_a_gem_for_the_application
    # What the adapter loads before Bundler must not be a gem.
    specs = 'Gem.loaded_specs.keys - %w[did_you_mean error_highlight]'
    hooks = { "config/kirin.rb" => "$before = #{specs}" }
    assert_equal "[]", shown("$before", files: hooks)
  end

  def test_bundle_gemfile_names_another_gemfile
    gemfile = "source 'https://rubygems.org'\ngem 'rack'\n"
    Dir.mktmpdir do |directory|
      path = File.join(directory, "Gemfile.other")
      File.write(path, gemfile)
      assert_equal path.inspect,
                   shown("ENV['BUNDLE_GEMFILE']", environment: { "BUNDLE_GEMFILE" => path })
    end
  end

  def test_nobody_serves_in_development_by_mistake
    variables = "ENV.values_at('RACK_ENV', 'RAILS_ENV')"
    none = { "RACK_ENV" => nil, "RAILS_ENV" => nil, "APP_ENV" => nil }
    rails = { "config/application.rb" => "" }
    assert_equal '["production", nil]', shown(variables, environment: none)
    assert_equal '["production", "production"]', shown(variables, environment: none, files: rails)
    given = none.merge("RAILS_ENV" => "staging")
    assert_equal '[nil, "staging"]', shown(variables, environment: given, files: rails)
  end

  def test_files_are_text_in_utf_8_without_a_locale
    text = '["é".encoding, File.read(__FILE__).encoding].join(" ")'
    assert_equal '"UTF-8 UTF-8"', shown(text, environment: { "LC_ALL" => "C" })
    other = { "RUBYOPT" => "-W -Eiso-8859-1" }
    assert_equal '"ISO-8859-1 ISO-8859-1"', shown(text, environment: other)
  end

  RACK_3 = <<~'RUBY'
    module Rack
      def self.release
        "3.1.0"
      end

      module Builder
        # This application looks like a list, too.
        def self.parse_file(_path)
          application = ->(env) { [200, {}, [env.values_at(*KEYS).inspect]] }
          application.define_singleton_method(:to_a) { [1, 2] }
          application
        end

        KEYS = %w[rack.version rack.hijack? rack.hijack rack.response_finished]
      end
    end
  RUBY

  def test_rack_3_returns_the_application_alone_and_has_other_keys
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "rack.rb"), RACK_3)
      FakeFront.run("", environment: { "RUBYLIB" => directory }) do |front|
        front.ready
        assert_equal "[nil, true, nil, []]", front.get("/").body
        assert_match(/\A\[nil, true, #<Kirin::HandOver/, front.get("/", "HTTP_UPGRADE" => "x").body)
      end
    end
  end

  def test_only_kirin_becomes_loadable
    program = <<~'RUBY'
      require "kirin"
      require "kirin/store"
      own = $LOAD_PATH.select { |path| File.exist?(File.join(path, "kirin/worker.rb")) }
      names = own.flat_map { |path| Dir.children(path) }
      others = names.reject { |name| name.start_with?("kirin") }.flat_map do |name|
        Dir.glob(File.join(own.first, name, "**/*.rb"))
      end
      run ->(env) { [200, {}, [others.reject { |path| path.include?("kirin") }.inspect]] }
    RUBY
    FakeFront.run(program) do |front|
      front.ready
      assert_equal "[]", front.get("/").body
    end
  end

  HOOKS = <<~'RUBY'
    note = lambda do |text|
      File.write(File.expand_path("../notes", __dir__), "#{text} #{Process.pid}\n", mode: "a")
    end
    before_fork { note.call("before fork") }
    on_worker_boot { note.call("boot") }
    on_worker_shutdown { raise "a bad hook" }
    on_worker_shutdown { note.call("shutdown") }
  RUBY

  def test_hooks_run_in_parent_and_worker
    program = <<~'RUBY'
      Kirin.on_worker_boot { $booted = true }
      run ->(env) { [200, {}, [$booted.inspect]] }
    RUBY
    FakeFront.run(program, files: { "config/kirin.rb" => HOOKS }) do |front|
      pid = front.ready
      assert_equal "true", front.get("/").body
      front.stop
      assert_equal ["before fork #{front.pid}", "boot #{pid}", "shutdown #{pid}"],
                   File.readlines(File.join(front.directory, "notes"), chomp: true)
      assert_match(/worker #{pid}: on_worker_shutdown: a bad hook \(RuntimeError\)/, front.log)
    end
  end

  def test_hooks_that_fail_are_told
    assert_match(/\Ano fork \(RuntimeError\)\n  .*config.ru:1/,
                 failure("Kirin.before_fork { raise 'no fork' }\nrun ->(_) {}"))
    FakeFront.run("Kirin.on_worker_boot { raise 'no boot' }\nrun ->(_) {}") do |front|
      pid = front.ready
      assert_equal "exited #{pid} 256", front.control_line
      front.wait_for_log(/kirin: worker #{pid}: no boot \(RuntimeError\)\n  .*config.ru:1/)
    end
    assert_match(/Kirin.before_fork needs a block/, failure("Kirin.before_fork"))
    assert_match(%r{undefined .*`on_boot'.*\n?.*config/kirin.rb:1}m,
                 failure("run 5", files: { "config/kirin.rb" => "on_boot { }" }))
  end

  def test_connections_of_rails_are_closed_before_the_fork
    program = <<~'RUBY'
      require "socket"
      module ActiveRecord
        module VERSION
          STRING = ENV.fetch("AR_VERSION")
        end

        class Base
          SOCKETS = UNIXSocket.pair
          def self.connection_handler
            self
          end

          def self.clear_all_connections!(*roles)
            $roles = roles
            SOCKETS.each(&:close)
          end
        end
      end
      LOADED = Process.pid
      run ->(env) { [200, {}, [[LOADED == Process.ppid, $roles].inspect]] }
    RUBY
    { "6.1.7" => [], "7.0.8" => [], "7.1.0" => [:all], "10.0" => [:all] }.each do |version, roles|
      FakeFront.run(program, environment: { "AR_VERSION" => version }) do |front|
        front.ready
        assert_equal [true, roles].inspect, front.get("/").body
      end
    end
  end

  def test_applications_that_workers_cannot_share_are_loaded_by_each
    {
      "$a, $b = UNIXSocket.pair" => "a connection to a nameless unix socket",
      "$server = TCPServer.new('127.0.0.1', 0)" => "a listening socket at 127.0.0.1:",
      "$pipe = IO.popen('true')" => "a pipe from another process",
      "$file = File.open(File.join(__dir__, 'db'), 'w+')" => "db, which is opened for reading and",
      "$db = File.open(File.join(__dir__, 'sqlite'))" => "the database /",
      "Thread.new { sleep }.name = 'mine'" => "started a thread, which a forked .*: mine"
    }.each do |code, text|
      program = "require 'socket'\n#{code}\nLOADED = Process.pid\n" \
                "run ->(env) { [200, {}, [(LOADED == Process.pid).inspect]] }"
      FakeFront.run(program, files: { "sqlite" => "SQLite format 3\0" }) do |front|
        pid = front.started
        assert_equal "true", front.get("/").body, code
        assert_equal "ready", front.control_line
        log = front.wait_for_log(/while it was loaded, the application .*#{text}/)
        assert_match(/workers cannot share this/, log)
        Process.kill(:KILL, pid)
        assert_equal "exited #{pid} 9", front.control_line
        front.started
        front.disconnect
        assert_equal "true", front.get("/").body
      end
    end
  end

  def test_what_workers_may_share_is_loaded_once
    {
      "$log = File.open(File.join(__dir__, 'x'), 'a')" => {}, "$r, $w = IO.pipe" => {},
      "$file = File.open(__FILE__)" => {}, "$x = UNIXSocket.pair" => { preload: "true" },
      "Socket.new(:UNIX, :DGRAM)" => {},
      "Thread.new { sleep }.tap { |t| t.thread_variable_set(:fork_safe, true) }" => {},
      "require 'timeout'; Timeout.timeout(5) { nil }" => {}
    }.each do |code, options|
      program = "require 'socket'\n#{code}\nLOADED = Process.pid\n" \
                "run ->(env) { [200, {}, [LOADED.to_s]] }"
      FakeFront.run(program, **options) do |front|
        front.ready
        assert_equal front.pid.to_s, front.get("/").body, code
        assert_empty front.log
      end
    end
  end

  def test_each_worker_loads_the_application_if_the_configuration_says_so
    program = "LOADED = [Process.pid, File.read(File.join(__dir__, 'version'))]\n" \
              "run ->(env) { [200, {}, [(LOADED + [Process.pid]).join(' ')]] }"
    FakeFront.run(program, preload: "false", files: { "version" => "one" }) do |front|
      pid = front.started
      assert_equal "#{pid} one #{pid}", front.get("/").body
      front.write("version", "two")
      Process.kill(:KILL, pid)
      front.disconnect
      assert_match(/ two /, front.get("/").body)
    end
    assert_match(/\Abad luck \(RuntimeError\)/, failure_of_worker("raise 'bad luck'"))
    assert_match(/the worker that was to load/, failure_of_worker("exit!(1)"))
  end

  def failure_of_worker(program)
    FakeFront.run(program, preload: "false") do |front|
      lines = []
      while (line = front.control_line)
        lines << line
      end
      assert_equal 1, front.wait.exitstatus
      return lines.grep(/\Afailed/).first.delete_prefix("failed ")
    end
  end

  def test_a_parent_that_hangs_while_loading_ends_with_its_front
    program = "File.write(File.join(__dir__, 'begun'), Process.pid.to_s)\nsleep"
    Dir.mktmpdir("kirin-ruby-") do |directory|
      File.write(File.join(directory, "config.ru"), program)
      listener = UNIXServer.new(File.join(directory, "workers"))
      front = fork do
        spawn(RbConfig.ruby, FakeFront::PROGRAM, "--front", Process.pid.to_s, "--",
              File.join(directory, "config.ru"), in: listener, out: File::NULL)
        sleep
      end
      begun = File.join(directory, "begun")
      Waiting.wait_until { File.size?(begun) }
      parent = File.read(begun).to_i
      Process.kill(:KILL, front)
      Process.wait(front)
      Waiting.wait_until("the parent has ended") { !FakeFront.alive?(parent) }
    end
  end
end
