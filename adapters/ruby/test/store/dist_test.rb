# frozen_string_literal: true

require "rubygems/package"
require_relative "programs"

# The gem: what is in it, and what an installation has. Nothing comes from the network.
class DistTest < ProgramTest
  class << self
    # Returns the path of the gem, which is built once.
    def gem
      @gem ||= begin
        directory = Dir.mktmpdir("kirin-gem-")
        Minitest.after_run { FileUtils.rm_rf(directory) }
        build(directory)
      end
    end

    def build(directory, **environment)
      script = File.join(Sources::REPOSITORY, "scripts/ruby-dist")
      output, status = Open3.capture2e(environment.transform_keys(&:to_s), script, directory)
      raise output unless status.success?

      output.lines.last.chomp
    end
  end

  def in_directory(&block)
    Dir.mktmpdir("kirin-gem-", &block)
  end

  # Runs a program, and returns what it prints.
  def run_program(environment, *command)
    clean = { "RUBYLIB" => nil, "RUBYOPT" => nil, "GEM_PATH" => nil, "BUNDLE_GEMFILE" => nil }
    output, status = Open3.capture2e(clean.merge(environment), *command, chdir: "/")
    assert status.success?, "#{command.join(' ')}: #{output}"
    output
  end

  # Calls the block with the environment of an installation of its own.
  def installed
    in_directory do |home|
      environment = { "GEM_HOME" => home }
      run_program(environment, "gem", "install", "--norc", "--local", "--no-document",
                  "--install-dir", home, self.class.gem)
      yield environment, home
    end
  end

  def test_the_same_sources_give_the_same_bytes
    in_directory do |other|
      umask = File.umask(0o077)
      again = self.class.build(other, TMPDIR: other)
      assert_equal File.binread(self.class.gem), File.binread(again)
    ensure
      File.umask(umask)
    end
  end

  def test_the_gem_has_the_library_and_nothing_else
    names = Gem::Package.new(self.class.gem).contents
    library = Dir.chdir(ADAPTER) { Dir["lib/**/*.rb", "ext/**/*.{c,h,rb}"] }
    assert_equal (library + %w[README.md LICENSE]).sort, names.sort
    assert_includes names, "lib/kirin/app_parent.rb"
  end

  def test_the_specification_says_what_the_gem_needs
    spec = Gem::Package.new(self.class.gem).spec
    assert_equal "kirin", spec.name
    assert_equal File.basename(self.class.gem), "kirin-#{spec.version}.gem"
    assert_empty spec.dependencies
    assert_equal Gem::Requirement.new(">= 3.0"), spec.required_ruby_version
    assert_equal ["MIT"], spec.licenses
    assert_empty spec.executables, "`kirin` is the program"
  end

  def test_an_installed_gem_has_the_store_and_the_adapter
    installed do |environment, home|
      program = 'require "kirin/store"; require "kirin/app_parent"; ' \
                'puts $LOADED_FEATURES.grep(/kirin/), Kirin::AppParent.method(:main).arity'
      lines = run_program(environment, RbConfig.ruby, "-w", "-e", program).lines(chomp: true)
      assert_equal "1", lines.pop
      assert(lines.all? { |line| line.start_with?(File.realpath(home)) || line.start_with?(home) })
    end
  end

  def test_rackup_serves_with_an_installed_gem
    installed do |environment, home|
      File.write(File.join(home, "config.ru"), <<~RUBY)
        run ->(env) { [200, {}, ["served by \#{env["SERVER_SOFTWARE"]}"]] }
      RUBY
      socket = File.join(home, "http.sock")
      with_gems = { **environment, "GEM_PATH" => [home, *Gem.path].join(":"),
                    "KIRIN_BINARY" => kirin, "RUBYLIB" => nil, "RUBYOPT" => nil,
                    "KIRIN_ADMIN_DIRECTORY" => home }
      pid = Process.spawn(with_gems, "rackup", "-s", "kirin", "-O", "listen=unix:#{socket}",
                          "-O", "workers=1", chdir: home, in: File::NULL,
                                             %i[out err] => File.join(home, "log"))
      answer = wait_until("it serves") do
        Socket.unix(socket) do |client|
          client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
          client.read
        end
      rescue SystemCallError
        flunk File.read(File.join(home, "log")) if Process.wait(pid, Process::WNOHANG)
        nil
      end
      assert_match(/served by .*kirin/i, answer)
    ensure
      if pid
        Process.kill(:TERM, pid)
        Process.wait(pid)
      end
    end
  end
end
