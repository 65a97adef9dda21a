# frozen_string_literal: true

require "minitest/autorun"
require_relative "fake_front"
require_relative "ring_relay"

# Sends the same requests to a worker that uses the ring and to one that does not. What comes back
# must be the same, and so must be the lines of the log.
class RingDifferentialTest < Minitest::Test
  PROGRAM = <<~'RUBY'
    LONG = (1..20_000).map { |number| "line #{number}\n" }.join

    class Parts
      def initialize(*parts)
        @parts = parts
      end

      def each
        @parts.each { |part| part == :fail ? raise("too late") : yield(part) }
      end

      def close
        warn("closed")
      end
    end

    class Listed < Parts
      def to_ary
        @parts
      end
    end

    class PlainHash < Hash; end

    def hint(env)
      env["rack.early_hints"].call("link" => "</a>")
    end

    def finished(env, body, &work)
      work ||= ->(status) { warn("finished: #{status}") }
      env["rack.response_finished"] << ->(_, status, _, _) { work.call(status) }
      [200, {}, body]
    end

    def child
      pid = fork
      return yield if pid.nil?

      Process.wait(pid)
      [200, {}, ["child #{$?.exitstatus}"]]
    end

    KINDS = {
      "plain" => -> { [200, { "content-type" => "text/plain", "x-a" => "b" }, ["hello"]] },
      "parts" => -> { [200, {}, ["a", "", "b"]] },
      "empty" => -> { [200, {}, []] },
      "empty-part" => -> { [200, {}, [""]] },
      "length" => -> { [200, { "Content-Length" => "100" }, ["short"]] },
      "number" => -> { [200, { "content-length" => 5, "x-a" => 5 }, ["hello"]] },
      "bytes" => -> { [200, {}, [(0..255).map(&:chr).join]] },
      "utf-8" => -> { [200, { "x-a" => "caf\u00E9" }, ["caf\u00E9"]] },
      "utf-16" => -> { [200, { "x-a" => "a".encode("UTF-16LE") }, ["a"]] },
      "utf-16-body" => -> { [200, {}, ["a".encode("UTF-16LE")]] },
      "bad-length" => -> { [200, { "content-length" => "caf\xE9" }, ["a"]] },
      "bad-coding" => -> { [200, { "transfer-encoding" => "caf\xE9" }, ["a"]] },
      "line-end" => -> { [200, { "x-a" => "a\r\nX-B: b" }, ["a"]] },
      "nul" => -> { [200, { "x-a" => "a\0" }, ["a"]] },
      "control" => -> { [200, { "x-a" => "a\x01b\x7f" }, ["a"]] },
      "lines" => -> { [200, { "set-cookie" => "a=b\nc=d\n" }, ["a"]] },
      "array" => -> { [200, { "set-cookie" => ["a=b", "c=d", 5, nil] }, ["a"]] },
      "name" => -> { [200, { "x a" => "a", "x-b" => "b", "" => "c" }, ["a"]] },
      "symbol" => -> { [200, { a: "b" }, ["a"]] },
      "framing" => lambda do
        fields = { "Connection" => "close", "keep-alive" => "5", "kirin-cleanup" => "1" }
        [200, { **fields, "kirin-file" => "x" }, ["a"]]
      end,
      "coded" => -> { [200, { "transfer-encoding" => "chunked" }, ["1\r\na\r\n0\r\n\r\n"]] },
      "message" => -> { [200, { "rack.x" => "a", "Rack.Y" => "b" }, ["a"]] },
      "subclass" => -> { [200, PlainHash["x-a", "b"], ["a"]] },
      "pairs" => -> { [200, [%w[x-a b]], ["a"]] },
      "nil-headers" => -> { [200, nil, ["a"]] },
      "nil-part" => -> { [200, {}, ["a", nil]] },
      "nil-body" => -> { [200, {}, nil] },
      "string-body" => -> { [200, {}, "a"] },
      "string-status" => -> { ["200", {}, ["a"]] },
      "bad-status" => -> { ["200 OK", {}, ["a"]] },
      "early-status" => -> { [103, {}, ["a"]] },
      "large-status" => -> { [1000, {}, ["a"]] },
      "nothing" => -> { [204, { "content-length" => "3" }, ["abc"]] },
      "unchanged" => -> { [304, { "etag" => "\"a\"", "content-length" => "3" }, []] },
      "not-found" => -> { [404, {}, ["not found"]] },
      "nil" => -> { nil },
      "two" => -> { [200, {}] },
      "four" => -> { [200, {}, ["a"], "more"] },
      "long" => -> { [200, {}, [LONG]] },
      "long-parts" => -> { [200, {}, [LONG, "and", LONG]] },
      "almost-long" => -> { [200, {}, [LONG[0, 48 * 1024 - 100]]] },
      "a-little-long" => -> { [200, {}, [LONG[0, 48 * 1024 - 20]]] },
      "long-field" => -> { [200, { "x-a" => "a" * 50_000 }, ["a"]] },
      "too-long-field" => -> { [200, { "x-a" => "a" * 70_000 }, ["a"]] },
      "each" => -> { [200, {}, Parts.new("a", "", "b")] },
      "each-nothing" => -> { [200, {}, Parts.new] },
      "each-length" => -> { [200, { "content-length" => "2" }, Parts.new("a", "b")] },
      "each-fail" => -> { [200, {}, Parts.new(:fail)] },
      "listed" => -> { [200, { "x-a" => "b" }, Listed.new("a", "b")] },
      "listed-long" => -> { [200, {}, Listed.new("a", LONG)] },
      "stream" => -> { [200, {}, ->(stream) { stream.write("a"); stream << "b"; stream.close }] },
      "partial-hijack" => lambda do
        [200, { "rack.hijack" => ->(stream) { stream.write("a"); stream.close } }, []]
      end,
      "file" => -> { [200, {}, File.open(RbConfig.ruby, "rb")] },
      "hints" => ->(env) { hint(env); [200, {}, ["after"]] },
      "hints-long" => ->(env) { hint(env); [200, {}, [LONG]] },
      "hints-each" => ->(env) { hint(env); [200, {}, Parts.new("a", "b")] },
      "hints-raise" => ->(env) { hint(env); raise "after 103" },
      "hints-late" => ->(env) { finished(env, ["a"]) { hint(env) } },
      "finished" => ->(env) { finished(env, ["a"]) },
      "finished-long" => ->(env) { finished(env, [LONG]) },
      "finished-each" => ->(env) { finished(env, Parts.new("a", "b")) },
      "finished-raise" => ->(env) { finished(env, ["a"]) { raise "in the work" } },
      "finished-hints" => ->(env) { hint(env); finished(env, ["a"]) },
      "reply" => ->(env) { env["rack.after_reply"] << -> { warn("replied") }; [200, {}, ["a"]] },
      "reply-500" => ->(env) { env["rack.after_reply"] << -> { warn("replied") }; raise "then" },
      "raise" => -> { raise "a bad day" },
      "throw" => -> { throw(:nothing) },
      "exit" => -> { exit(3) },
      "text" => -> { $stderr.print("no line end"); [200, {}, ["a"]] },
      "child" => -> { child { exit!(0) } },
      "child-raise" => -> { child { raise "in a child" } },
      "child-exit" => -> { child { exit(3) } },
      "child-answer" => -> { child { [200, {}, ["from a child"]] } },
      "change" => lambda do |env|
        env["REQUEST_METHOD"] = "HEAD"
        env["PATH_INFO"] << "x"
        [200, {}, ["a body"]]
      end,
      "clear" => ->(env) { env.clear; [200, {}, ["cleared"]] },
      "environment" => lambda do |env|
        lines = env.map { |name, value| "#{name}=#{value.is_a?(String) ? value : value.class}\n" }
        [200, {}, [lines.sort.join]]
      end,
      "encodings" => lambda do |env|
        names = env.values.grep(String).map { |value| value.encoding.name }
        [200, {}, [names.tally.sort.inspect]]
      end,
      "body" => lambda do |env|
        input = env["rack.input"]
        first = input.read(2).inspect
        rest = input.read
        input.rewind
        line = input.gets.inspect[0, 99]
        [200, {}, ["#{input.class} #{rest.encoding} #{first} #{rest.bytesize} #{line}"]]
      end,
      "read" => ->(env) { [200, {}, [env["rack.input"].read]] },
      "site" => -> { [200, {}, [Kirin::Site.of_process.inspect]] },
      "leave" => ->(env) { env["kirin.leave"].call; [200, {}, ["the last"]] },
      "leave-finished" => ->(env) { env["kirin.leave"].call; finished(env, ["the last"]) },
      "cut" => -> { [200, {}, Parts.new("a", :fail)] },
      "exit!" => -> { exit!(3) },
      "exit-late" => -> { [200, {}, ->(stream) { stream.write("a"); exit }] }
    }.freeze
    run lambda { |env|
      kind = KINDS.fetch(env["QUERY_STRING"])
      kind.arity.zero? ? kind.call : kind.call(env)
    }
  RUBY

  KINDS = PROGRAM.scan(/^  "([a-z0-9!-]+)" => /).flatten.freeze
  # After these the worker takes another connection, or another worker does.
  LAST = %w[leave leave-finished cut exit! exit-late].freeze

  def setup
    skip RingTool.missing if RingTool.missing
    @fronts = { socket: start("0"), ring: start("1").extend(RingRelay) }
  end

  def teardown
    @fronts&.each_value(&:close)
  end

  def start(wanted)
    FakeFront.new(PROGRAM, environment: { "KIRIN_RING" => wanted })
  end

  # Returns what is the same in all processes.
  def normal(text)
    text.gsub(/^\S+Z (?=kirin: )/, "").gsub(/(?:worker|process) [0-9]+/, "PID")
        .gsub(%r{\S*/kirin-ruby-[^/]+/}, "")
  end

  # Returns all responses to a request, and the end of the work behind them.
  def responses(front, values, body)
    front.send_request(values, body: body)
    found = []
    loop do
      found << front.response(values.fetch("REQUEST_METHOD", "GET"))
      break if found.last.is_cut || found.last.status >= 200
    end
    last = found.last
    found << front.read_bytes(1) if last["kirin-cleanup"] && last["connection"] != "close"
    found
  rescue FrontConnection::Cut
    found << :cut
  end

  def wait_for_the_next(front, is_last)
    front.disconnect if is_last
    front.request({ "QUERY_STRING" => "plain" })
  end

  # Asks both ways.
  def compare(kind, values = {}, body: "")
    seen = @fronts.transform_values do |front|
      logged = front.log.size
      found = responses(front, { "QUERY_STRING" => kind, **values }, body)
      is_cut = found.any? { |one| one == :cut || (one.respond_to?(:is_cut) && one.is_cut) }
      # The next response comes when everything about this one has been logged.
      wait_for_the_next(front, is_cut || LAST.include?(kind))
      { responses: found, log: normal(front.log[logged..]) }
    end
    assert_equal seen[:socket], seen[:ring], "#{kind} #{values}"
  end

  def test_the_list_of_kinds_is_complete
    assert_equal PROGRAM.scan(/^  "[^"]*" => (?:->|lambda)/).size, KINDS.size
    assert_operator KINDS.size, :>, 75
  end

  def test_the_fronts_use_what_they_should
    refute_match(/speaks/, @fronts[:socket].connect)
    assert_match(/speaks=2/, @fronts[:ring].connect)
  end

  def test_responses
    KINDS.each do |kind|
      compare(kind)
      compare(kind, { "REQUEST_METHOD" => "HEAD" })
    end
  end

  def test_requests
    compare("environment", { "HTTP_A" => "", "HTTP_B" => "\xFF".b, "HTTP_C" => "0" })
    compare("environment", { "HTTPS" => "on" })
    compare("environment", { "HTTPS" => "off" })
    compare("environment", { "HTTP_VERSION" => "5", "HTTP_CONTENT_TYPE" => "a",
                             "HTTP_CONTENT_LENGTH" => "7" })
    compare("environment", { "REQUEST_METHOD" => "OPTIONS", "PATH_INFO" => "",
                             "REQUEST_URI" => "*" })
    compare("environment", { "PATH_INFO" => "/caf\xC3\xA9".b, "REQUEST_URI" => "/caf%c3%a9" })
    compare("environment", (1..200).to_h { |number| ["HTTP_X_#{number}", "x" * number] })
    compare("encodings", { "HTTP_A" => "\xFF".b })
    compare("site", { "KIRIN_SITE" => "shop" })
    compare("site")
    compare("plain", { "HTTP_UPGRADE" => "x" })
  end

  def test_bodies
    ["abc", "\0" * 300, "a\nb\n", "caf\u00E9", "x" * 10_000, "x" * 60_000].each do |body|
      %w[body read plain].each { |kind| compare(kind, { "REQUEST_METHOD" => "POST" }, body: body) }
    end
    form = { "REQUEST_METHOD" => "POST", "kirin.form" => "3\x1Fa\x1Fb" }
    compare("environment", form, body: "a=b")
  end
end
