# frozen_string_literal: true

require "minitest/autorun"
require_relative "fake_front"

# Rack::Lint checks both sides: what the adapter gives to an application, and how it treats what
# the application returns.
class RackTest < Minitest::Test
  LINTED = <<~'RUBY'
    # Rack::Lint needs it.
    require "uri"
    use Rack::Lint
    run lambda { |env|
      input = env["rack.input"]
      lines = []
      parts = [input.read(2), input.gets, input.read]
      input.rewind
      input.each { |line| lines << line }
      env["rack.errors"].puts("written\ntwice")
      env["rack.errors"].write("no line end")
      env["rack.errors"].flush
      [200, { "Content-Type" => "text/plain", "X-Two" => "a\nb" }, [[parts, lines].inspect]]
    }
  RUBY

  ENVIRONMENT = <<~RUBY
    run lambda { |env|
      shown = env.transform_values { |one| one.is_a?(String) ? [one, one.encoding.to_s] : one }
      shown = shown.select { |_, one| [Array, TrueClass, FalseClass].include?(one.class) }
      [200, {}, [Marshal.dump(shown)]]
    }
  RUBY

  def environment(values = {}, **options)
    FakeFront.run(ENVIRONMENT, **options) do |front|
      front.ready
      return Marshal.load(front.request(values).body)
    end
  end

  def test_the_environment_and_a_response_pass_lint
    FakeFront.run(LINTED) do |front|
      front.ready
      response = front.get("/")
      assert_equal [[nil, nil, ""], []].inspect, response.body, front.log
      assert_equal %w[a b], response.values("x-two")
      response = front.request({ "REQUEST_METHOD" => "POST" }, body: "one\ntwo\nthree")
      lines = %W[one\n two\n three]
      assert_equal [["on", "e\n", "two\nthree"], lines].inspect, response.body, front.log
      front.wait_for_log(/^written\ntwice\nno line end$/)
    end
  end

  def test_all_kinds_of_requests_pass_lint
    kinds = [
      { "HTTPS" => "on" }, { "SCRIPT_NAME" => "/mounted", "PATH_INFO" => "" },
      { "REQUEST_METHOD" => "OPTIONS", "REQUEST_URI" => "*", "PATH_INFO" => "" },
      { "SERVER_PROTOCOL" => "HTTP/2" }, { "SERVER_PROTOCOL" => "HTTP/1.0" },
      { "HTTP_CONTENT_LENGTH" => "1", "HTTP_CONTENT_TYPE" => "text/x" },
      { "HTTP_UPGRADE" => "echo" }, { "REQUEST_METHOD" => "PROPFIND" },
      { "PATH_INFO" => "/caf\xE9".b }, { "HTTP_VERSION" => "evil" }
    ]
    FakeFront.run(LINTED) do |front|
      front.ready
      kinds.each do |values|
        assert_equal 200, front.request(values).status, "#{values} #{front.log}"
      end
    end
  end

  def test_the_environment_has_the_values_of_rack
    found = environment
    assert_equal ["", "ASCII-8BIT"], found["SCRIPT_NAME"]
    assert_equal ["HTTP/1.1", "ASCII-8BIT"], found["HTTP_VERSION"]
    assert_equal "http", found["rack.url_scheme"].first
    assert_equal [1, 3], found["rack.version"]
    %w[rack.multithread rack.multiprocess rack.run_once rack.hijack?].each do |name|
      assert_equal false, found[name], name
    end
    assert_equal [], found["rack.after_reply"]
    assert_equal [], found["rack.response_finished"]
    refute found.key?("rack.hijack")
  end

  def test_https_is_the_scheme_and_several_workers_are_several_processes
    found = environment({ "HTTPS" => "on" }, workers: 2)
    assert_equal "https", found["rack.url_scheme"].first
    assert_equal true, found["rack.multiprocess"]
  end

  def test_the_version_of_a_client_is_not_that_of_http
    assert_equal "HTTP/1.1", environment({ "HTTP_VERSION" => "evil" })["HTTP_VERSION"].first
  end

  # Returns SCRIPT_NAME and PATH_INFO for a target and what the front makes of it.
  def paths(front, target, script, path)
    response = front.request({ "REQUEST_URI" => target, "SCRIPT_NAME" => script.b,
                               "PATH_INFO" => path.b })
    Marshal.load(response.body).values_at("SCRIPT_NAME", "PATH_INFO").map(&:first)
  end

  def test_paths_are_encoded_as_the_client_has_sent_them
    FakeFront.run(ENVIRONMENT) do |front|
      front.ready
      [
        ["/a%20b?q=%20", "", "/a b", ["", "/a%20b"]],
        ["/a%2Fb%25", "", "/a/b%", ["", "/a%2Fb%25"]],
        ["/%2541", "", "/%41", ["", "/%2541"]],
        ["/%6D/caf%c3%A9", "/m", "/café", ["/%6D", "/caf%c3%A9"]],
        ["/m%20n", "/m n", "", ["/m%20n", ""]],
        ["/a|b", "", "/a|b", ["", "/a|b"]],
        ["/caf\xE9".b, "", "/caf\xE9", ["", "/caf\xE9".b]],
        ["/100%", "", "/100%", ["", "/100%"]],
        # A route has rewritten these.
        ["/old/a%2Fb", "", "/new/a/b c?", ["", "/new/a/b%20c%3F"]],
        ["/old", "/é", "/x", ["/%C3%A9", "/x"]],
        ["/plain?a=b", "/other", "/new", ["/other", "/new"]],
        ["*", "", "", ["", "/"]]
      ].each do |target, script, path, expected|
        assert_equal expected, paths(front, target, script, path), target
      end
    end
  end

  def test_an_empty_input_stays_what_it_is
    program = <<~'RUBY'
      run lambda { |env|
        input = env["rack.input"]
        tried = %w[write << ungetc string= reopen truncate].map do |name|
          input.public_send(name, *(name == "truncate" ? 10 : "text"))
          "done"
        rescue IOError, FrozenError
          "refused"
        end
        input.set_encoding("UTF-8")
        3.times { input.close }
        text = [tried, input.read, input.closed?, input.external_encoding.to_s].inspect
        [200, {}, [text]]
      }
    RUBY
    FakeFront.run(program) do |front|
      front.ready
      2.times do
        assert_equal [["refused"] * 6, "", false, "ASCII-8BIT"].inspect, front.get("/").body
      end
    end
  end
end
