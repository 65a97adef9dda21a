# frozen_string_literal: true

require "fileutils"
require "minitest/autorun"
require "tmpdir"
require_relative "content"
require_relative "differential"
require_relative "served"

# A test of an application that Kirin and Puma serve. Both start once for all tests of a class,
# because a start takes seconds. Each has a copy of the application, with its own database.
class Comparison < Minitest::Test
  # What is random or a time in the answers of an application.
  RANDOM = [].freeze
  # Fields that are not compared.
  IGNORED = [].freeze

  class << self
    attr_reader :servers

    # Says which directory has the application.
    def serve(name)
      @source = File.expand_path(name, __dir__)
    end

    # The environment of both servers. `directory` is for files that the application reads.
    def environment(_directory)
      {}
    end

    # Prepares the application once, in the directory that is copied then.
    def prepare(_directory); end

    # More of the environment for Kirin.
    def kirin_environment
      {}
    end

    # The number of Kirin's workers, if there is no `kirin.toml`.
    def workers
      2
    end

    # The text of a `kirin.toml`. Without one it is `kirin serve .`.
    def configuration; end

    # Starts both servers, once.
    def start
      raise "the servers have not started" if @servers && @servers.size < 2
      return if @servers

      directory = Dir.mktmpdir("software-")
      @servers = []
      Minitest.after_run { stop(directory) }
      made = File.join(directory, "made")
      FileUtils.cp_r(@source, made)
      prepare(made)
      given = environment(directory)
      # Servers send the times of files as fields.
      FileUtils.cp_r(made, File.join(directory, "kirin"), preserve: true)
      FileUtils.cp_r(made, File.join(directory, "puma"), preserve: true)
      File.write(File.join(directory, "kirin", "kirin.toml"), configuration) if configuration
      @servers << Served.by_kirin(File.join(directory, "kirin"), workers, **given,
                                  **kirin_environment)
      @servers << Served.by_puma(File.join(directory, "puma"), **given)
    end

    private

    def stop(directory)
      errors = @servers.filter_map(&:stop)
      raise errors.first if errors.any?
    ensure
      FileUtils.rm_rf(directory)
    end
  end

  attr_reader :visit

  def setup
    self.class.start
    @visit = Differential.new(self, *servers, random: self.class::RANDOM,
                                               ignored: self.class::IGNORED)
  end

  def teardown
    @visit&.close
  end

  def servers
    self.class.servers
  end

  def visitors
    @visit.visitors
  end

  def step(...)
    @visit.step(...)
  end

  def assert_connections_kept
    @visit.assert_connections_kept
  end

  def form(pairs)
    Content.form(pairs)
  end

  def multipart(pairs)
    Content.multipart(pairs)
  end
end
