# frozen_string_literal: true

require "minitest/autorun"
require_relative "fake_front"

# How the response of an application reaches the front.
class ResponseTest < Minitest::Test
  PROGRAM = <<~'RUBY'
    class Parts
      def initialize(*parts)
        @parts = parts
      end

      def each
        @parts.each { |part| yield part.respond_to?(:call) ? part.call : part }
      end

      def close
        File.write(File.join(__dir__, "closed"), "x", mode: "a")
      end
    end

    class Many < Parts
      def to_ary
        @parts
      end
    end

    class Both < Parts
      def call(stream)
        stream.write("called")
      end
    end

    FIELDS = {
      "array" => { "Set-Cookie" => %w[a=1 b=2] }, "lines" => { "Set-Cookie" => "a=1\nb=2" },
      "pairs" => [%w[X-A a], %w[X-A b]], "nil" => { "X-A" => nil }, "number" => { "X-A" => 5 },
      "bytes" => { "X-A" => "caf\xE9".b, "X-B" => "café" }, "control" => { "X-A" => "a\x01b" },
      "hop" => { "Connection" => "close", "KEEP-ALIVE" => "x", "kirin-Cleanup" => "1",
                 "Kirin-File" => "x", "rack.session" => "x" },
      "odd" => { "X Evil" => "b", "" => "b", "X:Y" => "b", "X-A" => "a" },
      "return" => { "X-A" => "a\rb" }, "nul" => { "X-A" => ["a", "a\0b"] },
      "name" => { "X-A\r\nB" => "a" }, "utf16" => { "X-A" => "a".encode("UTF-16LE") },
      "symbol" => { content_type: "text/plain" }, "long" => { "X-A" => "a" * 70_000 },
      "none" => nil, "text" => "text", "length" => { "Content-Length" => "abc" }
    }

    BODIES = {
      "one" => -> { [200, {}, ["hello"]] },
      "two" => -> { [200, {}, ["hé", "\xFF".b]] },
      "none" => -> { [200, {}, []] },
      "wrong" => -> { [200, { "Content-Length" => "1000" }, ["short"]] },
      "many" => -> { [200, {}, Many.new("one", "two")] },
      "each" => -> { [200, {}, Parts.new("one", "", "two")] },
      "both" => -> { [200, {}, Both.new("one", "two")] },
      "exact" => -> { [200, { "Content-Length" => 6 }, Parts.new("one", "two")] },
      "long" => -> { [200, { "content-length" => "3" }, Parts.new("on", "etwo", "three")] },
      "short" => -> { [200, { "Content-Length" => "9" }, Parts.new("one", "two")] },
      "empty-short" => -> { [200, { "Content-Length" => "9" }, Parts.new] },
      "empty" => -> { [200, {}, Parts.new] },
      "coded" => -> { [200, { "Transfer-Encoding" => "chunked" },
                       Parts.new("3\r\none\r\n", "0\r\n\r\n")] },
      "coded-array" => -> { [200, { "Transfer-Encoding" => "Chunked" },
                             ["3\r\none\r\n", "0\r\n\r\n"]] },
      "204" => -> { [204, { "Content-Length" => "5" }, Parts.new("hello")] },
      "304" => -> { [304, {}, ["hello"]] },
      "stream" => -> { [200, {}, ->(stream) { stream << "one"; stream.write("t", "wo") }] },
      "silent" => -> { [200, {}, ->(stream) { stream.close }] },
      "puts" => -> { [200, {}, ->(stream) { stream.puts("one", %w[two]); stream.print("3") }] },
      "hijack" => -> { [200, { "rack.hijack" => ->(io) { io.write("one"); io.close } }, []] },
      "thread" => -> { [200, { "rack.hijack" => lambda { |io|
        Thread.new do
          sleep(0.01) until File.exist?(File.join(__dir__, "go"))
          io.write("late")
          io.close
        end
      } }, Parts.new] },
      "after-end" => -> { [200, {}, ->(stream) { $kept = stream; stream.write("one") }] },
      "kept" => -> { [200, {}, [begin; $kept.write("evil"); rescue IOError => e; e.message; end]] },
      "frozen" => -> { [200, {}.freeze, ["hello".freeze].freeze].freeze },
      "status" => -> { ["201", {}, ["hello"]] },
      "nothing" => -> { nil }, "text" => -> { [200, {}, "text"] }, "number" => -> { [200, {}, 5] },
      "nil-part" => -> { [200, {}, ["a", nil]] }, "nil-alone" => -> { [200, {}, [nil]] },
      "late-nil" => -> { [200, {}, Parts.new("a", nil)] }, "short-list" => -> { [200] }
    }

    run lambda { |env|
      kind, name = env["PATH_INFO"].delete_prefix("/").split("/")
      case kind
      when "fields" then [200, FIELDS.fetch(name), ["a"]]
      when "status" then [name.match?(/\A-?\d+\z/) ? name.to_i : name, {}, ["a"]]
      else BODIES.fetch(name).call
      end
    }
  RUBY

  def with_front
    FakeFront.run(PROGRAM) do |front|
      @pid = front.ready
      yield front
      assert FakeFront.alive?(@pid), front.log
    end
  end

  def body(front, name, method = "GET")
    front.get("/body/#{name}", "REQUEST_METHOD" => method)
  end

  # A body is closed when the client has its last part.
  def wait_until_closed(front, times)
    path = File.join(front.directory, "closed")
    Waiting.wait_until("#{times} bodies are closed") { File.size?(path) == times }
  end

  def test_arrays_have_the_length_of_their_parts
    with_front do |front|
      { "one" => "hello", "two" => "hé".b + "\xFF".b, "none" => "", "wrong" => "short",
        "many" => "onetwo", "frozen" => "hello", "status" => "hello" }.each do |name, text|
        response = body(front, name)
        assert_equal [text.b, text.bytesize.to_s, nil],
                     [response.body, *response.fields.to_h.values_at("content-length",
                                                                     "transfer-encoding")], name
      end
      wait_until_closed(front, 1)
    end
  end

  def test_other_bodies_are_chunked_or_have_the_length_that_the_application_says
    with_front do |front|
      response = body(front, "each")
      assert_equal ["onetwo", 2, "chunked"],
                   [response.body, response.chunks, response["transfer-encoding"]]
      assert_equal %w[onetwo 6], [body(front, "exact").body, body(front, "exact")["content-length"]]
      assert_equal "onetwo", body(front, "both").body
      assert_equal ["", "0"], [body(front, "empty").body, body(front, "empty")["content-length"]]
      wait_until_closed(front, 6)
    end
  end

  def test_a_body_that_is_chunked_already_stays_as_it_is
    with_front do |front|
      %w[coded coded-array].each { |name| assert_equal "one", body(front, name).body }
    end
  end

  def test_a_body_is_cut_to_its_length_or_cut_off
    with_front do |front|
      assert_equal "one", body(front, "long").body
      front.wait_for_log(/longer than its Content-Length/)
      response = body(front, "short")
      assert_equal ["onetwo", true], [response.body, response.is_cut]
      front.wait_for_log(%r{GET /body/short: the response body is 3 bytes shorter than its Content})
      assert_equal "", front.rest
      front.disconnect
      assert_equal 500, body(front, "empty-short").status
    end
  end

  def test_head_and_statuses_without_a_body_have_none
    with_front do |front|
      { "one" => "5", "wrong" => "1000", "each" => nil, "exact" => "6", "stream" => nil,
        "none" => nil }.each do |name, length|
        response = body(front, name, "HEAD")
        assert_equal [200, length, nil],
                     [response.status, *response.fields.to_h.values_at("content-length",
                                                                       "transfer-encoding")], name
      end
      assert_equal [204, []], body(front, "204").to_a.first(2)
      assert_equal [304, [%w[content-length 5]]], body(front, "304").to_a.first(2)
      assert_equal "hello", body(front, "one").body
    end
  end

  def test_streaming_bodies_write_what_is_sent
    with_front do |front|
      response = body(front, "stream")
      assert_equal ["onetwo", 3], [response.body, response.chunks]
      assert_equal "", body(front, "silent").body
      assert_equal "one\ntwo\n3", body(front, "puts").body
      assert_equal "one", body(front, "hijack").body
    end
  end

  def test_a_thread_may_write_to_a_partial_hijack_until_it_closes_it
    with_front do |front|
      front.send_request({ "PATH_INFO" => "/body/thread" })
      front.write("go", "")
      assert_equal "late", front.response.body
      wait_until_closed(front, 1)
    end
  end

  def test_a_stream_that_is_kept_reaches_no_other_response
    with_front do |front|
      assert_equal "one", body(front, "after-end").body
      assert_equal "the response has ended", body(front, "kept").body
    end
  end

  def test_fields_come_from_arrays_and_from_lines
    with_front do |front|
      %w[array lines].each do |name|
        assert_equal %w[a=1 b=2], front.get("/fields/#{name}").values("set-cookie"), name
      end
      assert_equal %w[a b], front.get("/fields/pairs").values("x-a")
      assert_equal "", front.get("/fields/nil")["x-a"]
      assert_equal "5", front.get("/fields/number")["x-a"]
      assert_equal ["caf\xE9".b, "café".b],
                   front.get("/fields/bytes").fields.to_h.values_at("x-a", "x-b").map(&:b)
      assert_equal "a b", front.get("/fields/control")["x-a"]
      assert_equal "1", front.get("/fields/length")["content-length"]
    end
  end

  def test_fields_about_the_connection_are_not_the_applications
    with_front do |front|
      assert_equal [%w[content-length 1]], front.get("/fields/hop").fields
    end
  end

  def test_names_that_no_field_can_have_are_left_out_and_logged_once
    with_front do |front|
      2.times { assert_equal "a", front.get("/fields/odd").fields.to_h["x-a"] }
      assert_equal 2, front.get("/fields/odd").fields.size
      log = front.wait_for_log(/'X:Y' is left out/)
      assert_equal 1, log.scan("'X Evil' is left out").size
    end
  end

  def test_fields_that_cannot_be_sent_are_500
    with_front do |front|
      %w[return nul name utf16 symbol long none text].each do |name|
        assert_equal 500, front.get("/fields/#{name}").status, name
        front.wait_for_log(%r{kirin: worker #{@pid}: GET /fields/#{name}: .*ResponseError})
      end
    end
  end

  def test_statuses_that_cannot_be_sent_are_500
    with_front do |front|
      [*%w[0 99 1000 abc 100 103 101 -1], "200 OK", "200\r\nX-Evil: b"].each do |status|
        assert_equal 500, front.get("/status/#{status}").status, status
      end
      assert_equal 600, front.get("/status/600").status
    end
  end

  def test_responses_that_rack_does_not_allow_are_500
    with_front do |front|
      %w[nothing text number nil-part nil-alone short-list].each do |name|
        assert_equal 500, body(front, name).status, name
      end
      response = body(front, "late-nil")
      assert_equal ["a", true], [response.body, response.is_cut]
    end
  end

  def test_a_client_that_disconnects_ends_the_response_and_not_the_worker
    program = <<~'RUBY'
      class Endless
        def each
          loop { yield "x" * 65_536 }
        end

        def close
          File.write(File.join(__dir__, "closed"), "")
        end
      end
      run ->(env) { [200, {}, env["PATH_INFO"] == "/pid" ? [Process.pid.to_s] : Endless.new] }
    RUBY
    FakeFront.run(program) do |front|
      pid = front.ready
      front.send_request
      front.read_until("\r\n\r\n")
      front.disconnect
      Waiting.wait_until("the body is closed") { front.exist?("closed") }
      assert_equal pid.to_s, front.get("/pid").body
      refute_match(/kirin: worker/, front.log)
    end
  end
end
