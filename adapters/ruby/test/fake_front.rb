# frozen_string_literal: true

require "fileutils"
require "tmpdir"
require_relative "front_connection"

# The front's side of the protocol: it starts kirin-worker with an application, and talks to one
# worker at a time.
#
#   FakeFront.run("run ->(env) { [200, {}, ['hello']] }") do |front|
#     front.ready
#     response = front.get("/")
#   end
class FakeFront < FrontConnection
  PROGRAM = File.expand_path("../bin/kirin-worker", __dir__)

  attr_reader :directory, :pid

  # Starts a front, and ends it behind the block.
  def self.run(program, **options)
    front = new(program, **options)
    yield front
  ensure
    front&.close
  end

  # Returns whether a process exists and is not only waiting to be reaped.
  def self.alive?(pid)
    File.read("/proc/#{pid}/stat").rpartition(")").last.split.first != "Z"
  rescue SystemCallError
    false
  end

  # `program` is the text of the application, and `files` are others by their names. `options` are
  # those of kirin-worker. `environment` adds variables, and `stderr` is in place of the log file.
  def initialize(program, target: "config.ru", files: {}, environment: {}, stderr: nil, **options)
    @directory = Dir.mktmpdir("kirin-ruby-")
    { target => program, **files }.each { |name, text| write(name, text) }
    super(File.join(@directory, "workers"))
    @control_text = String.new
    listener = UNIXServer.new(@path)
    @control, control = IO.pipe
    words = options.flat_map { |name, value| ["--#{name.to_s.tr("_", "-")}", value.to_s] }
    @pid = spawn(
      { "RUBYOPT" => "-W", **environment }, RbConfig.ruby, PROGRAM, "--front", Process.pid.to_s,
      *words, "--", File.join(@directory, target),
      in: listener, out: control, err: stderr || [log_path, "a"], chdir: @directory
    )
    [listener, control].each(&:close)
  end

  # Writes a file of the application.
  def write(name, text)
    path = File.join(@directory, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
  end

  def exist?(name)
    File.exist?(File.join(@directory, name))
  end

  # Ends all processes, and removes the files.
  def close
    disconnect
    stop unless @status
    @control.close
    FileUtils.rm_rf(@directory)
  end

  # ---------------------------------------------------------------- the control channel

  # Returns the next line of the control channel, or nil at its end.
  def control_line
    until @control_text.include?("\n")
      raise "no line on the control channel: #{log}" unless @control.wait_readable(Waiting::SECONDS)

      @control_text << @control.readpartial(65_536)
    end
    line, @control_text = @control_text.split("\n", 2)
    line
  rescue EOFError
    nil
  end

  # Returns the process id of the next worker that starts, skipping other lines.
  def started
    loop do
      line = control_line
      raise "the parent has ended: #{log}" if line.nil?
      return Regexp.last_match(1).to_i if line =~ /\Astarted ([0-9]+)\z/
    end
  end

  # Waits for `ready` and the first worker with preloading. Returns the worker's id.
  def ready
    line = control_line
    raise "not ready: #{line}; the log: #{log}" if line != "ready"

    started
  end

  # ---------------------------------------------------------------- the process

  # Returns what parent and workers have written to STDERR.
  def log
    File.exist?(log_path) ? File.read(log_path, encoding: "UTF-8").scrub : ""
  end

  # Waits until the log has a text, and returns it.
  def wait_for_log(text)
    Waiting.wait_until("#{text.inspect} in the log of #{@directory}") { log.match?(text) && log }
  rescue StandardError => error
    raise error.class, "#{error.message}:\n#{log[-4000..] || log}"
  end

  def kill(signal)
    Process.kill(signal, @pid)
  end

  # Ends the parent, and returns its exit status.
  def stop(signal = "TERM")
    kill(signal) if @status.nil?
    wait
  end

  # Waits for the parent, and returns its exit status.
  def wait
    Waiting.wait_until("the parent has ended") do
      @status ||= Process.wait2(@pid, Process::WNOHANG)&.last
    end
    @status
  end

  private

  def log_path
    File.join(@directory, "log")
  end
end
