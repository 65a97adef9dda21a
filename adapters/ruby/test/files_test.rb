# frozen_string_literal: true

require "minitest/autorun"
require_relative "fake_front"

# Files that an application hands back.
class FilesTest < Minitest::Test
  PROGRAM = <<~'RUBY'
    require "tempfile"
    PATH = File.join(__dir__, "file.txt")

    class Named
      attr_reader :to_path

      def initialize(path)
        @to_path = path
      end

      def each
        yield "from the worker"
      end

      def close
        $closed = true
      end
    end

    BODIES = {
      "open" => -> { File.open(PATH, "rb") },
      "text" => -> { File.open(PATH) },
      "named" => -> { Named.new(PATH) },
      "relative" => -> { Named.new("file.txt") },
      "proxied" => -> { Rack::BodyProxy.new(File.open(PATH, "rb")) { $closed = true } },
      "read" => -> { File.open(PATH, "rb").tap { |file| file.read(4) } },
      "decoded" => -> { File.open(PATH, "r:UTF-16LE:UTF-8") },
      "closed" => -> { File.open(PATH, "rb").tap(&:close) },
      "gone" => lambda {
        File.write("#{PATH}.gone", "temporary")
        File.open("#{PATH}.gone", "rb").tap { File.unlink("#{PATH}.gone") }
      },
      "replaced" => lambda {
        File.write("#{PATH}.1", "first")
        file = File.open("#{PATH}.1", "rb")
        File.write("#{PATH}.2", "second")
        File.rename("#{PATH}.2", "#{PATH}.1")
        file
      },
      "missing" => -> { Named.new("#{PATH}.none") },
      "directory" => -> { Named.new(__dir__) },
      "space" => -> { Named.new("#{PATH} ").tap { File.write("#{PATH} ", "x") } },
      "line" => -> { Named.new("#{PATH}\n").tap { File.write("#{PATH}\n", "x") } },
      "nil" => -> { Named.new(nil) },
      "fd" => -> { IO.for_fd(IO.sysopen(PATH), "rb") },
      "tempfile" => -> { Tempfile.new.tap { |file| file.write("0123"); file.rewind } },
      "rack" => -> { Rack::Files.new(__dir__).call($env.merge("PATH_INFO" => "/file.txt"))[2] },
      "state" => -> { [$closed.inspect] }
    }
    run lambda { |env|
      $env = env
      name, status, length = env["PATH_INFO"].delete_prefix("/").split("/")
      [(status || 200).to_i, length ? { "Content-Length" => length } : {}, BODIES.fetch(name).call]
    }
  RUBY

  def with_front
    FakeFront.run(PROGRAM, files: { "file.txt" => "0123456789" }) do |front|
      front.ready
      @state = File.stat(File.join(front.directory, "file.txt"))
      @path = File.join(front.directory, "file.txt")
      yield front
    end
  end

  def value
    numbers = [@state.dev, @state.ino, @state.size, @state.mtime.to_i, @state.ctime.to_i]
    "#{numbers.join(" ")} #{@path}"
  end

  def test_the_front_sends_files_that_are_complete
    with_front do |front|
      %w[open text named relative proxied rack].each do |name|
        response = front.get("/#{name}")
        assert_equal [value, "0", ""], [response["kirin-file"], response["content-length"],
                                        response.body], name
      end
      %w[open/404 open/200/10].each do |name|
        assert_equal value, front.get("/#{name}")["kirin-file"], name
      end
      assert_equal value, front.get("/open", "REQUEST_METHOD" => "HEAD")["kirin-file"]
      assert_match(%r{\A\d+ \d+ 4 \d+ \d+ /}, front.get("/tempfile")["kirin-file"])
      assert_equal "true", front.get("/state").body
    end
  end

  def test_the_worker_sends_the_others
    with_front do |front|
      { "read" => "456789", "gone" => "temporary", "replaced" => "first", "fd" => "0123456789",
        "missing" => "from the worker", "directory" => "from the worker",
        "space" => "from the worker", "line" => "from the worker", "nil" => "from the worker",
        "open/200/4" => "0123" }.each do |name, text|
        response = front.get("/#{name}")
        assert_equal [nil, text], [response["kirin-file"], response.body], name
      end
      assert_nil front.get("/decoded")["kirin-file"]
      front.disconnect
      assert_equal 500, front.get("/closed").status
    end
  end

  def test_the_worker_sends_what_only_it_can
    with_front do |front|
      [{ "REQUEST_METHOD" => "POST" }, { "KIRIN_SENDFILE" => "0" }].each do |values|
        assert_equal "0123456789", front.get("/open", values).body
      end
      [204, 304].each { |status| assert_empty front.get("/open/#{status}").fields }
    end
  end

  def test_the_worker_sends_files_in_large_parts_with_their_length
    program = <<~'RUBY'
      FILE = File.join(__dir__, "lines")
      File.write(FILE, "a line\n" * 20_000)
      run lambda { |env|
        [200, {}, File.open(env["PATH_INFO"] == "/proc" ? "/proc/self/status" : FILE)]
      }
    RUBY
    FakeFront.run(program) do |front|
      front.ready
      response = front.get("/", "REQUEST_METHOD" => "POST")
      assert_equal %w[140000 140000], [response.body.bytesize.to_s, response["content-length"]]
      response = front.get("/proc", "REQUEST_METHOD" => "POST")
      assert_match(/^Pid:/, response.body)
      assert_equal 1, response.chunks
    end
  end

  def test_files_do_not_stay_open
    program = <<~'RUBY'
      run lambda { |env|
        next [200, {}, File.open(__FILE__, "rb")] if env["PATH_INFO"] == "/file"

        [200, {}, [Dir.children("/proc/self/fd").size.to_s]]
      }
    RUBY
    FakeFront.run(program) do |front|
      front.ready
      before = front.get("/").body
      20.times { front.get("/file") }
      assert_equal before, front.get("/").body
    end
  end
end
