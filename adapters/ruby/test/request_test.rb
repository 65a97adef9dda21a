# frozen_string_literal: true

require "digest"
require "minitest/autorun"
require "tempfile"
require_relative "fake_front"

# How a request reaches an application: its head, and its body.
class RequestTest < Minitest::Test
  ECHO = <<~RUBY
    require "digest"
    run lambda { |env|
      input = env["rack.input"]
      text = input.read
      input.rewind
      again = input.read == text
      names = env.keys.select { |name| name.start_with?("HTTP_X_") }
      [200, { "X-Class" => input.class.to_s, "X-Size" => input.size.to_s, "X-Again" => again.to_s,
              "X-Names" => names.size.to_s, "X-Query" => env["QUERY_STRING"],
              "X-Encoding" => [text.encoding, input.external_encoding].uniq.join(" ") },
       ["\#{text.bytesize} \#{Digest::MD5.hexdigest(text)}"]]
    }
  RUBY

  def with_echo(**options)
    FakeFront.run(ECHO, **options) do |front|
      front.ready
      yield front
    end
  end

  def counted(body)
    "#{body.bytesize} #{Digest::MD5.hexdigest(body)}"
  end

  def pattern(size)
    ((0..250).to_a.pack("C*") * (1 + size / 251)).byteslice(0, size)
  end

  def test_bodies_of_all_sizes_arrive_and_can_be_read_twice
    with_echo do |front|
      [1, 5, 4000, 4096, 65_536, 1 << 20, (1 << 20) + 1, 3_000_000].each do |size|
        response = front.request({ "REQUEST_METHOD" => "POST" }, body: pattern(size))
        assert_equal counted(pattern(size)), response.body, size
        assert_equal ["true", size.to_s, "ASCII-8BIT"],
                     response.fields.to_h.values_at("x-again", "x-size", "x-encoding")
        assert_equal size > (1 << 20) ? "File" : "StringIO", response["x-class"]
      end
      assert_equal counted(""), front.get("/").body
    end
  end

  def test_a_body_comes_as_a_descriptor
    with_echo do |front|
      assert_includes front.connect.split, "body=descriptor"
      [3_000_000, 5, 0].each do |size|
        Tempfile.create("kirin") do |file|
          file.write(pattern(size))
          file.flush
          File.open(file.path, "rb") do |descriptor|
            response = front.request({ "REQUEST_METHOD" => "POST" }, file: descriptor)
            assert_equal counted(pattern(size)), response.body
            assert_equal %w[File true ASCII-8BIT],
                         response.fields.to_h.values_at("x-class", "x-again", "x-encoding")
          end
        end
      end
      assert_equal counted("hello"), front.request({}, body: "hello").body
    end
  end

  def test_descriptors_of_bodies_do_not_stay_open
    program = <<~RUBY
      run ->(env) { [200, {}, [Dir.children("/proc/self/fd").size.to_s]] }
    RUBY
    FakeFront.run(program) do |front|
      front.ready
      counts = 5.times.map { File.open(__FILE__) { |file| front.request({}, file: file).body } }
      assert_equal 1, counts.uniq.size, counts
    end
  end

  def test_without_descriptors_all_bodies_are_bytes
    with_echo(environment: { "KIRIN_RING" => "0" }) do |front|
      refute_includes front.connect, "body="
      response = front.request({}, body: pattern(2_000_000))
      assert_equal counted(pattern(2_000_000)), response.body
    end
  end

  def test_a_request_in_pieces_is_one_request
    with_echo do |front|
      front.connect
      values = [%w[CONTENT_LENGTH 5], *FrontConnection::DEFAULTS, %w[HTTP_X_A b]]
      FrontConnection.encode(values, "hello").each_char do |byte|
        front.connection.write(byte)
      end
      response = front.response
      assert_equal counted("hello"), response.body
      assert_equal "1", response["x-names"]
    end
  end

  def test_a_long_head_arrives
    with_echo do |front|
      response = front.request({ "QUERY_STRING" => "q" * 100_000 })
      assert_equal 50_000, response["x-query"]&.size || 50_000
      many = (1..2000).to_h { |number| ["HTTP_X_#{number}", "v" * 20] }
      assert_equal "2000", front.request(many, body: "hello").then { |one| one["x-names"] }
    end
  end

  def test_bytes_that_are_no_request_end_the_connection_and_not_the_worker
    ["GET / HTTP/1.1\r\n\r\n", "12345678:", "5:hello;", "999999:A", "10:NAME\0VALUE,",
     "0:,", "6:A\0B\0C\0,", ":"].each do |bytes|
      FakeFront.run("run ->(env) { [200, {}, [Process.pid.to_s]] }") do |front|
        pid = front.ready
        front.connect
        front.connection.write(bytes)
        # What looks like the start of a request waits for its end.
        front.connection.close_write
        assert_equal "", front.rest
        front.wait_for_log(/no request/) unless bytes == ":"
        assert_equal "exited #{pid} 0", front.control_line
      end
    end
  end

  def test_a_body_that_finds_no_room_is_refused_and_the_worker_serves_on
    program = <<~RUBY
      Process.setrlimit(:FSIZE, 100_000)
      run ->(env) { [200, {}, [env["rack.input"].read.bytesize.to_s]] }
    RUBY
    FakeFront.run(program, stderr: File::NULL) do |front|
      pid = front.ready
      response = front.request({ "HTTP_X_REQUEST_ID" => "abc" }, body: pattern(3_000_000))
      assert_equal 507, response.status
      assert_equal "Insufficient Storage\nRequest id: abc\n", response.body
      assert_equal "5", front.request({}, body: "hello").body
      assert FakeFront.alive?(pid)
    end
  end

  def test_a_request_that_ends_early_is_not_seen_by_the_application
    program = 'run ->(env) { File.write(File.join(__dir__, "seen"), ""); [200, {}, []] }'
    FakeFront.run(program) do |front|
      pid = front.ready
      front.connect
      values = [%w[CONTENT_LENGTH 100], *FrontConnection::DEFAULTS]
      front.connection.write(FrontConnection.encode(values, "hello"))
      front.connection.close_write
      assert_equal "", front.rest
      assert_equal "exited #{pid} 0", front.control_line
      refute front.exist?("seen")
    end
  end
end
