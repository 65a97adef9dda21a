# frozen_string_literal: true

require "fcntl"
require "fileutils"
require "open3"
require "socket"
require "tmpdir"
require_relative "../lib/kirin/ring"

# Compiles the programs of adapters/ring/t, which are fronts for tests.
module RingTool
  SOURCES = File.expand_path("../../ring/t", __dir__)

  # Returns why there is no ring here, or nil.
  def self.missing
    return "the compiled part is not there" unless Kirin::Ring.available?

    "a C compiler is not there" unless system("command -v cc >/dev/null")
  end

  # Returns the path of a program.
  def self.build(name)
    @programs ||= {}
    @programs[name] ||= begin
      program = File.join(directory, name)
      files = [name, "front"].map { |file| File.join(SOURCES, "#{file}.c") }
      output, status = Open3.capture2e("cc", "-O1", "-o", program, *files)
      raise output unless status.success?

      program
    end
  end

  # Returns a pair of sockets as programs in C expect them: reads and writes wait.
  def self.socket_pair
    UNIXSocket.pair.each do |socket|
      socket.fcntl(Fcntl::F_SETFL, socket.fcntl(Fcntl::F_GETFL) & ~File::NONBLOCK)
    end
  end

  # It is removed with the process that made it.
  def self.directory
    @directory ||= Dir.mktmpdir("kirin-ring-").tap do |path|
      owner = Process.pid
      at_exit { FileUtils.rm_rf(path) if Process.pid == owner }
    end
  end
  private_class_method :directory
end
