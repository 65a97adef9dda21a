# frozen_string_literal: true

require "rack/lint"
require "rack/mock"
require_relative "example"

# What Kirin, the workers and other servers need of the example.
class ExampleTest < Minitest::Test
  LOAD = /^load = ".*"$/.freeze

  def setup
    @directory = Dir.mktmpdir("memo-ruby-")
    @database = "#{@directory}/memo.sqlite"
  end

  def teardown
    FileUtils.rm_rf(@directory)
  end

  def test_after_loading_no_database_file_is_open_so_workers_may_be_forked
    site = site_with(@database)
    assert_empty open_files
    site.memos.public_total
    assert_includes open_files, @database
    site.database.close
  end

  def test_the_configuration_is_that_of_the_example_in_perl
    here, perl = %w[memo-ruby memo].map { |name| File.read("#{EXAMPLE}/../#{name}/kirin.toml") }
    assert_equal ['load = "config.ru"'], here.scan(LOAD)
    assert_equal perl.gsub(LOAD, ""), here.gsub(LOAD, "")
  end

  def test_other_servers_send_the_files_too
    client = Rack::MockRequest.new(application)
    style = client.get("/memo.css")
    assert_equal 200, style.status
    assert_equal File.binread("#{EXAMPLE}/public/memo.css"), style.body
    assert_equal "image/svg+xml", client.get("/favicon.svg").content_type
    assert_equal 404, client.get("/memo.css.map").status
    assert_equal 404, client.get("/../config.ru").status
  end

  def test_the_responses_are_those_of_rack
    client = Rack::MockRequest.new(Rack::Lint.new(application))
    statuses = %w[/ /signin /mypage /memo/1].map { |path| client.get(path).status }
    assert_equal [200, 200, 303, 404], statuses
    assert_equal 405, client.post("/mypage").status
    assert_equal "", client.head("/").body
  end

  private

  # Returns the application of config.ru, with a database and without a store.
  def application
    before = ENV.to_h.slice("MEMO_DATABASE", "KIRIN_STORE")
    ENV["MEMO_DATABASE"] = @database
    ENV.delete("KIRIN_STORE")
    verbose, $VERBOSE = $VERBOSE, nil
    loaded = Rack::Builder.parse_file("#{EXAMPLE}/config.ru")
    # With Rack 2, options are beside it.
    loaded.is_a?(Array) ? loaded.first : loaded
  ensure
    $VERBOSE = verbose
    ENV.update("MEMO_DATABASE" => nil, "KIRIN_STORE" => nil, **before)
  end

  # Returns the files of the test that this process has open.
  def open_files
    files = Dir.children("/proc/self/fd").map do |number|
      File.readlink("/proc/self/fd/#{number}")
    rescue Errno::ENOENT
      # The directory that was just listed.
      nil
    end
    files.compact.select { |file| file.start_with?(@directory) }
  end
end
