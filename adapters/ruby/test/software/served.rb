# frozen_string_literal: true

# An application behind a server of its own.
#
#   kirin = Served.by_kirin(directory)
#   Minitest.after_run { kirin.stop }
#
# Each server takes a free port itself, and its log says which.

require "fileutils"
require "tmpdir"
require_relative "../waiting"

class Served
  include Waiting

  REPOSITORY = File.expand_path("../../../..", __dir__)
  ADDRESS = %r{http://127\.0\.0\.1:([1-9]\d*)}.freeze
  # What must not change the mode of a framework or of a server. KIRIN_RING=0 runs without the ring.
  NOT_INHERITED = /\A(KIRIN(?!_RING\z)|RACK_|RAILS_|APP_ENV|PUMA|WEB_CONCURRENCY|BUNDLE|RUBY|GEM)/
                  .freeze

  attr_reader :name, :port

  # Starts `kirin serve` for a directory, or for the `kirin.toml` in it.
  def self.by_kirin(directory, workers, **environment)
    command = [kirin_program, "serve"]
    command.push(".", "--listen", "0", "--workers", workers.to_s) unless
      File.exist?(File.join(directory, "kirin.toml"))
    new("kirin", command, directory, environment)
  end

  # Starts Puma as its users do: one process with threads.
  def self.by_puma(directory, **environment)
    command = %w[puma -e production --early-hints -t 4:4 -b tcp://127.0.0.1:0 config.ru]
    new("puma", command, directory, environment)
  end

  # Returns the path of the built program. A missing one fails the test.
  def self.kirin_program
    path = ENV.fetch("KIRIN_BINARY", File.join(REPOSITORY, "target/debug/kirin"))
    File.executable?(path) ? path : raise("kirin is not built: cargo build -p kirin")
  end

  def initialize(name, command, directory, environment)
    @name = name
    @files = Dir.mktmpdir("#{name}-")
    unset = ENV.keys.grep(NOT_INHERITED).to_h { |key| [key, nil] }
    # Other Kirins of this machine are not found from here.
    given = unset.merge("KIRIN_ADMIN_DIRECTORY" => @files, **environment.transform_keys(&:to_s))
    @pid = Process.spawn(given, *command, in: File::NULL, out: [log_path, "a"],
                                          err: %i[child out], chdir: directory)
    @port = wait_until("#{name} serves") { find_port }
  rescue StandardError => e
    text = log
    stop
    raise "#{name} has not started: #{e.message}\n#{text}"
  end

  # Returns what the server and the application have logged.
  def log
    File.read(log_path, encoding: "UTF-8").scrub
  end

  # Waits until the log has this, because a line can be later than the response.
  def wait_for_log(pattern)
    wait_until("#{@name} logs #{pattern.inspect}") { log.match?(pattern) }
  end

  # Ends the server. Returns the error of one that does not end by itself, or nil.
  def stop
    Process.kill(:TERM, @pid) if @pid
    wait_until("#{@name} ends") { ended? }
    nil
  rescue StandardError => e
    kill
    e
  ensure
    FileUtils.rm_rf(@files)
  end

  private

  def log_path
    File.join(@files, "log")
  end

  def find_port
    raise "it has ended" if ended?

    log[ADDRESS, 1]&.to_i
  end

  def ended?
    @pid = nil if @pid && Process.wait(@pid, Process::WNOHANG)
    @pid.nil?
  end

  def kill
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @pid = nil
  end
end
