# frozen_string_literal: true

# The real programs that these tests use: a store, and a Kirin that serves pages from its store.
#
#   Memcached.run { |memcached| Kirin::Store.new(memcached.address) }
#
# Everything is on unix sockets in a temporary directory, so no port is taken.

require "fileutils"
require "minitest/autorun"
require "open3"
require "rbconfig"
require "socket"
require "tmpdir"
require_relative "../waiting"

# Where the sources and the built program are.
module Sources
  ADAPTER = File.expand_path("../..", __dir__)
  REPOSITORY = File.expand_path("../..", ADAPTER)
  LIBRARY = File.join(ADAPTER, "lib")

  # Returns the path of the built program. A missing one fails the test.
  def kirin
    path = ENV.fetch("KIRIN_BINARY", File.join(REPOSITORY, "target/debug/kirin"))
    File.executable?(path) ? path : raise("kirin is not built: cargo build -p kirin")
  end
end

$LOAD_PATH.unshift(Sources::LIBRARY)
require "kirin/store"

# A process with a directory of its own, which listens on a unix socket.
class Program
  include Sources
  include Waiting

  attr_reader :pid, :directory

  # Calls the block with a running program, and ends it.
  def self.run(*arguments)
    program = new(*arguments)
    program.start
    yield program
  ensure
    program&.stop
    FileUtils.rm_rf(program.directory) if program
  end

  def initialize
    @directory = Dir.mktmpdir("kirin-store-")
  end

  def path(name)
    File.join(@directory, name)
  end

  def start
    FileUtils.rm_f(path("store"))
    @pid = Process.spawn(environment, *command, in: File::NULL, out: [path("log"), "a"],
                                                err: %i[child out], chdir: @directory)
    wait_until("the program listens") { listens? }
  end

  def environment
    { "KIRIN_ADMIN_DIRECTORY" => @directory }
  end

  def log
    File.read(path("log"))
  end

  def address
    "unix:#{path('store')}"
  end

  # Stops all threads of the program. A signal alone returns before that.
  def pause
    Process.kill(:STOP, @pid)
    wait_until("the program is stopped") do
      Dir["/proc/#{@pid}/task/*/stat"].all? { |file| File.read(file)[/.*\) (\S)/m, 1] == "T" }
    end
  end

  def go_on
    Process.kill(:CONT, @pid)
  end

  def stop
    return unless @pid

    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @pid = nil
  end

  private

  def listens?
    if Process.wait(@pid, Process::WNOHANG)
      @pid = nil
      raise "the program has ended:\n#{log}"
    end
    ready_path.all? { |file| Socket.unix(file) { true } }
  rescue SystemCallError
    false
  end

  def ready_path
    [path("store")]
  end
end

# A store alone: `kirin memcached`.
class Memcached < Program
  def initialize(*options)
    super()
    @options = options
  end

  def command
    user = Process.euid.zero? ? %w[-u root] : []
    [kirin, "memcached", *user, *@options, "-s", path("store")]
  end
end

# `kirin serve` with a memcached socket. Routes answer from the store.
class Serving < Program
  CONFIGURATION = <<~TOML
    [[listener]]
    address = "unix:http.sock"
    [store]
    memory = "16MB"
    memcached = ["unix:store"]
    session_cookie = "rack.session"
    [[route]]
    path = "/"
    try = ["store"]
    [[site]]
    hosts = ["shop.test"]
    [[site.route]]
    path = "/"
    try = ["store"]
  TOML

  def initialize
    super
    File.write(path("kirin.toml"), CONFIGURATION)
  end

  def command
    [kirin, "serve", "--config", path("kirin.toml")]
  end

  # Returns status, head and body of a response.
  def get(target, host: "other.test", fields: "")
    Socket.unix(path("http.sock")) do |client|
      client.write("GET #{target} HTTP/1.1\r\nHost: #{host}\r\nConnection: close\r\n#{fields}\r\n")
      head, _, body = client.read.partition("\r\n\r\n")
      [head.split(" ", 3)[1].to_i, head, body]
    end
  rescue SystemCallError => e
    raise "#{target}: #{e.message}\n#{log}"
  end

  private

  def ready_path
    [path("store"), path("http.sock")]
  end
end

# A test with programs.
class ProgramTest < Minitest::Test
  include Sources
  include Waiting
end

# A store for all tests of a class.
class StoreTest < ProgramTest
  class << self
    def memcached
      @memcached ||= Memcached.new.tap do |program|
        program.start
        Minitest.after_run do
          program.stop
          FileUtils.rm_rf(program.directory)
        end
      end
    end
  end

  attr_reader :store

  def setup
    @store = new_store
    raw("flush_all")
  end

  def new_store(**options)
    Kirin::Store.new(self.class.memcached.address, **options)
  end

  # Sends a line, and returns the first line of the reply.
  def raw(line)
    Socket.unix(self.class.memcached.path("store")) do |client|
      client.write("#{line}\r\n")
      client.gets("\r\n").chomp
    end
  end
end
