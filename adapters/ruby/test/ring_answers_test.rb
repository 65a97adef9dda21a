# frozen_string_literal: true

require "minitest/autorun"
require "stringio"
require_relative "../lib/kirin"
require_relative "../lib/kirin/worker"
require_relative "front_connection"
require_relative "ring_slot"

# Compares the compiled part with the Ruby code, which is the reference: environments with those of
# Kirin::RackEnvironment, and answers with those of Kirin::Response. The compiled part may leave any
# response to the Ruby code. But then it must not have touched it.
class RingAnswersTest < Minitest::Test
  SEED = (ENV["KIRIN_SEED"] || 1).to_i
  RESPONSES = 10_000
  # The bytes of an answer in the slot.
  ROOM = 8 * 1024

  CONSTANT = {
    "SERVER_SOFTWARE" => "Kirin", "rack.url_scheme" => "http", "rack.input" => StringIO.new,
    "rack.errors" => $stderr, "rack.multithread" => false, "rack.early_hints" => -> {}
  }.freeze

  # What the Response of the reference needs.
  class Reference
    attr_reader :bytes, :is_closed

    def transport
      self
    end

    def write_whole(*bytes, **)
      @bytes = bytes.map(&:b).join
    end

    def last_fields
      ""
    end

    def announced_work?
      false
    end

    def close_body(body)
      @is_closed = true if body.respond_to?(:close)
    end
  end

  # Texts and lists whose code notices that it is called.
  class Odd < String
    class << self
      attr_accessor :calls
    end

    %i[to_s to_str bytesize encoding].each do |name|
      define_method(name) do |*arguments|
        Odd.calls += 1
        super(*arguments)
      end
    end
  end

  class OddHash < Hash
    def each(&block)
      Odd.calls += 1
      super
    end
  end

  class PlainHash < Hash
    def [](name)
      super(name.downcase)
    end
  end

  class SomeArray < Array
  end

  def setup
    skip RingTool.missing if RingTool.missing
    @random = Random.new(SEED)
    @slot = RingSlot.new(CONSTANT, answer_bytes: ROOM)
    @made = @left = 0
    Odd.calls = 0
  end

  def teardown
    @slot&.close
  end

  def one_of(list)
    list[@random.rand(list.size)]
  end

  def request(pairs = [], body: "")
    FrontConnection.encode([["CONTENT_LENGTH", body.bytesize.to_s], %w[SCGI 1], *pairs], body)
  end

  # Puts a request into the slot and takes it. Returns its environment.
  def take(bytes = request(FrontConnection::DEFAULTS))
    @slot.put(bytes)
    @slot.take
  end

  def answer
    @slot.ring.answer(200, {}, []) || @slot.ring.answer_bytes(["x"], false) || flunk("no answer")
    @slot.report
  end

  # ---------------------------------------------------------------- environments

  # Returns what the worker makes of a request without a body.
  def environment_of(bytes)
    environment = Kirin::RequestHead.of_whole(bytes)
    Kirin::RackEnvironment.complete(environment, CONSTANT)
    Kirin::AfterResponse.in_environment(environment)
    environment
  end

  def random_pairs(number)
    names = %w[HTTPS KIRIN_SITE HTTP_COOKIE CONTENT_TYPE kirin.query A HTTP_VERSION
               HTTP_CONTENT_TYPE HTTP_CONTENT_LENGTH 0 a=b HTTP_UPGRADE] +
            ["HTTP_#{"LONG_" * @random.rand(60)}", "HTTP_X#{number}", "HTTP_\xE9".b, " "]
    values = ["", "0", "on", "a", "x" * @random.rand(500), "\xFF\xFE".b, "a\nb", "%41", " ", "1e3"]
    pairs = FrontConnection::DEFAULTS.merge(
      "PATH_INFO" => one_of(["", "/", "/a"]), "SCRIPT_NAME" => one_of(["", "/mount"]),
      "REQUEST_METHOD" => one_of(%w[GET HEAD POST])
    )
    # Each name comes once. Hash distinguishes what is the same for the front.
    pairs.merge(Array.new(@random.rand(40)) { [one_of(names).b, one_of(values).b] }.to_h)
  end

  def test_environments_are_those_of_sockets
    700.times do |number|
      pairs = random_pairs(number)
      # Requests with the same names get copies of one hash from the third one on.
      others = pairs.transform_values { |value| one_of(["", "/", "on", value]) }
      [pairs, pairs, pairs, others].each do |one|
        bytes = request(one)
        environment = take(bytes)
        assert_equal environment_of(bytes), environment, "request #{number}, seed #{SEED}"
        check_values(environment)
        check_path(environment)
        answer
      end
    end
  end

  def check_values(environment)
    environment.each_value do |value|
      next unless value.is_a?(String) && !CONSTANT.value?(value)

      assert_equal Encoding::BINARY, value.encoding unless value == "https" || value == "/"
      refute value.frozen?
    end
  end

  def check_path(environment)
    before = environment.dup
    Kirin::RackPath.encode(environment) unless environment["REQUEST_URI"].empty?
    assert_equal before, environment if @slot.ring.plain_path?
  end

  def test_paths_that_need_no_code
    bytes = (0..255).map { |byte| byte.chr.b }
    { "PATH_INFO" => "/a", "SCRIPT_NAME" => "/m", "REQUEST_URI" => "/" }.each do |name, start|
      (bytes - ["\0"]).each do |byte|
        pairs = FrontConnection::DEFAULTS.merge(name => start.b + byte)
        environment = take(request(pairs))
        is_plain = name == "REQUEST_URI" ? byte != "%" : !byte.match?(Kirin::RackPath::UNSAFE)
        assert_equal is_plain, @slot.ring.plain_path?, "#{name} #{byte.inspect}"
        check_path(environment)
        answer
      end
    end
  end

  def test_work_after_the_response_is_left_to_ruby
    %w[rack.after_reply rack.response_finished].each_with_index do |name, index|
      environment = take
      list = environment[name]
      assert_same list, @slot.ring.after[index]
      # What counts is the list that was there first.
      environment[name] = []
      list << -> {}
      refute @slot.ring.answer(200, {}, ["a"])
      list.clear
      assert @slot.ring.answer(200, {}, ["a"])
      @slot.report
    end
  end

  def test_each_request_has_values_of_its_own
    environment = take(request(FrontConnection::DEFAULTS.merge("A" => "one"), body: "the body"))
    assert_equal "the body".b, @slot.ring.body
    assert_nil @slot.ring.body, "it is given away once"
    environment.each_value { |value| value << " changed" if value.is_a?(String) && !value.frozen? }
    environment["rack.multithread"] = "no"
    environment.delete("SERVER_PROTOCOL")
    answer
    bytes = request(FrontConnection::DEFAULTS.merge("A" => "two"))
    assert_equal environment_of(bytes), take(bytes)
    assert_nil @slot.ring.body
    answer
  end

  def test_what_is_no_request_is_refused
    [":", "x", "5", "5:", "-1:a,", "9:A\0b\0,", "99999999:", "1234567890:A\0", "2:AA,", "3:A\0b,",
     "\0" * 20, "4:A\0b\0"].each do |bytes|
      @slot.put(bytes)
      assert_raises(ArgumentError, bytes.inspect) { @slot.take }
      answer
    end
  end

  # ---------------------------------------------------------------- answers

  TEXTS = [
    "", "a", "hello", "0", "text/html; charset=utf-8", "tab\tthere", "line\n", "one\ntwo", "\n",
    "a\r\nb: c", "nul\0", "\x01", "\x7f", "\x80".b, "\xFF".b, "caf\u00E9", "\u263A", "caf\xE9",
    "x" * 300, " ", "chunked", "12", "-1", :chunked, "utf16".encode("UTF-16LE"),
    "dummy".dup.force_encoding("UTF-7")
  ].freeze
  ODD = [
    -> { nil }, -> { 5 }, -> { -7 }, -> { 2**70 }, -> { 1.5 }, -> { :symbol }, -> { true },
    -> { [] }, -> { %w[a b] }, -> { ["a", nil] }, -> { ["a", ["b"]] }, -> { ["a", 5, "b\nc"] },
    -> { SomeArray.new(%w[a b]) }, -> { {} }, -> { Object }, -> { Odd.new("odd") }, -> { -> {} },
    -> { "own".dup.tap { |text| text.define_singleton_method(:to_s) { "another" } } }
  ].freeze
  NAMES = %w[
    Content-Type content-type X-A Set-Cookie x !#$%&'*+.^_`|~-0Zz Content_Length content-lengtH
    Content-Length Transfer-Encoding CONNECTION Keep-Alive Kirin-Cleanup kirin-file Kirin-Files
    rack.hijack rack. Rack.x rackx rack Connections
  ].push("", "a b", "a:", "a\n", "a\0", "X-\xE9".b, "\u212Airin-File").freeze
  STATUSES = [
    *[200] * 10, 404, 500, 999, 1000, 201, 206, 199, 100, 101, 103, 204, 304, 0, -200, 99, "200",
    "204", "abc", 200.0, nil, 2**70, "200 OK"
  ].freeze

  def text
    @random.rand < 0.9 ? one_of(TEXTS) : one_of(ODD).call
  end

  def headers
    pairs = Array.new(@random.rand(5)) do
      [@random.rand < 0.97 ? one_of(NAMES[0, 5] * 3 + NAMES) : text, text]
    end
    case @random.rand(30)
    when 0 then pairs
    when 1 then one_of(ODD).call
    when 2 then OddHash[pairs]
    when 3, 4 then PlainHash[pairs]
    when 5 then pairs.to_h.tap { |hash| hash.define_singleton_method(:each) { nil } }
    when 6 then pairs.to_h.freeze
    when 7 then Hash.new { |_, _| raise "asked" }.merge(pairs.to_h)
    when 8 then pairs.to_h.compare_by_identity
    else pairs.to_h
    end
  end

  def body
    parts = Array.new(@random.rand(4)) do
      @random.rand < 0.95 ? one_of(TEXTS.grep(String) + ["x" * @random.rand(4000)]) : text
    end
    case @random.rand(30)
    when 0 then SomeArray.new(parts)
    when 1 then one_of(ODD).call
    when 2 then parts.tap { |list| list.define_singleton_method(:close) { nil } }
    when 3 then parts.freeze
    else parts
    end
  end

  # The same numbers make the same response again, so that no value has been looked at before.
  def response(number)
    @random = Random.new(SEED * 1_000_000 + number)
    [one_of(STATUSES), headers, body]
  end

  # Returns the bytes of the reference, or nil if it cannot send the response as it is.
  def reference(status, headers, body)
    reference = Reference.new
    fields = Kirin::ResponseHead.new
    head = fields.build(status, headers)
    return unless body.is_a?(Array)

    Kirin::Response.new(reference, head, fields, false).send_body(body)
    reference.bytes unless reference.is_closed
  rescue Kirin::ResponseError, NoMethodError, TypeError
    nil
  end

  # Compares one response. The block makes it, each time from the start.
  def check(name)
    wanted = reference(*yield)
    Odd.calls = 0
    take
    if @slot.ring.answer(*yield)
      @made += 1
      phase, bytes = @slot.report
      assert_equal RingSlot::ANSWERED, phase, name
      assert_equal wanted, bytes, "#{name} (seed #{SEED}): #{yield.inspect}"
    else
      @left += 1
      assert @slot.ring.answer_bytes(%w[pl ain], false), name
      assert_equal [RingSlot::ANSWERED, "plain"], @slot.report, name
    end
    assert_equal 0, Odd.calls, "#{name} (seed #{SEED}): code of a value was called"
  end

  def test_random_responses
    RESPONSES.times { |number| check("response #{number}") { response(number) } }
    assert_operator @made, :>, RESPONSES / 10, "made by the compiled part"
    assert_operator @left, :>, RESPONSES / 10, "left to Ruby"
  end

  def test_each_byte
    256.times do |byte|
      text = byte.chr.b
      check("name #{byte}") { [200, { "X#{text}" => "a" }, ["b"]] }
      check("only name #{byte}") { [200, { text => "a" }, ["b"]] }
      check("value #{byte}") { [200, { "X" => "a".b << text << "b" }, ["b"]] }
      check("last of a value #{byte}") { [200, { "X" => ["a", text] }, ["b"]] }
      check("body #{byte}") { [200, {}, [text, text]] }
      check("framing #{byte}") { [200, { "Connectio#{text}" => "close" }, ["b"]] }
      check("message #{byte}") { [200, { "rack#{text}" => "a" }, ["b"]] }
    end
    assert_operator @made, :>, 1000
  end

  def test_each_status
    (-1..1100).each do |status|
      check("status #{status}") { [status, { "Content-Length" => 3 }, ["abc"]] }
    end
    assert_equal 798, @made
  end

  def test_what_plain_responses_must_be_made_by_the_compiled_part
    {
      "hello" => -> { [200, { "content-type" => "text/plain" }, ["hello"]] },
      "nothing" => -> { [404, {}, []] },
      "parts" => -> { [200, { "content-length" => "3", "X-A" => 5 }, ["a", "", "bc"]] },
      "cookies of Rack 2" => -> { [200, { "Set-Cookie" => "a=b\nc=d" }, ["x"]] },
      "cookies of Rack 3" => -> { [200, { "set-cookie" => %w[a=b c=d] }, ["x"]] },
      "a subclass" => -> { [200, PlainHash["content-type", "text/plain"], ["x"]] },
      "a text of a view" => -> { [200, {}, [Odd.new("odd")]] },
      "frozen" => -> { [200, { "a" => "b" }.freeze, ["x"].freeze].freeze },
      "UTF-8" => -> { [200, { "x-a" => "caf\u00E9" }, ["caf\u00E9", "\xFF".b]] },
      "a number" => -> { [200, { "content-length" => 100 }, ["short"]] }
    }.each do |name, make|
      check(name, &make)
      assert_equal 0, @left, name
    end
  end

  def test_as_much_as_there_is_room_for
    ((ROOM - 150)..(ROOM + 50)).each do |length|
      check("body of #{length}") { [200, {}, ["x" * length]] }
      check("bodies of #{length}") { [200, {}, ["x" * (length / 8)] * 8] }
      check("name of #{length}") { [200, { "x" * length => "a" }, ["b"]] }
      check("value of #{length}") { [200, { "a" => "x" * length }, ["b"]] }
      check("values of #{length}") { [200, { "a" => ["x" * (length / 8)] * 8 }, ["b"]] }
      check("lines of #{length}") { [200, { "a" => "\n" * (length / 5) }, ["b"]] }
    end
    assert_operator @made, :>, 50
    assert_operator @left, :>, 50
    ((ROOM - 1)..(ROOM + 1)).each do |length|
      take
      is_sent = @slot.ring.answer_bytes(["x", "y" * (length - 1)], false)
      assert_equal length <= ROOM, is_sent
      @slot.ring.answer_bytes(["x"], false) unless is_sent
      @slot.report
    end
  end

  def test_a_head_is_not_longer_than_what_the_front_accepts
    slot = RingSlot.new(CONSTANT, answer_bytes: 128 * 1024)
    most = Kirin::ResponseHead::MOST_BYTES - "HTTP/1.1 200\r\na: \r\n".bytesize
    { most => true, most + 1 => false }.each do |length, is_made|
      slot.put(request)
      slot.take
      assert_equal is_made, slot.ring.answer(200, { "a" => "x" * length }, ["b"])
      slot.ring.answer_bytes(["x"], false) unless is_made
      slot.report
    end
  ensure
    slot&.close
  end

  # ---------------------------------------------------------------- the slot

  def test_head_is_left_to_ruby
    take(request({ **FrontConnection::DEFAULTS, "REQUEST_METHOD" => "HEAD" }))
    refute @slot.ring.answer(200, {}, ["a"])
    answer
    take
    assert @slot.ring.answer(200, {}, ["a"])
    @slot.report
  end

  def test_an_answer_is_given_once
    take
    assert @slot.ring.answer(200, {}, ["a"])
    refute @slot.ring.answer(200, {}, ["b"])
    refute @slot.ring.answer_bytes(["b"], false)
    refute @slot.ring.over_connection
    phase, bytes = @slot.report
    assert_equal RingSlot::ANSWERED, phase
    assert bytes.end_with?("a")
  end

  def test_a_cleanup_is_reported_at_its_end
    take
    assert @slot.ring.answer_bytes(["a"], true)
    assert_equal [RingSlot::CLEANS_UP, "a"], @slot.report
    @slot.ring.cleaned_up
    @slot.put("")
    assert_equal RingSlot::CLEANED_UP, @slot.report.first
  end

  def test_an_answer_over_the_connection_is_none_in_the_slot
    take
    assert @slot.ring.over_connection
    assert @slot.ring.over_connection, "it may be called again"
    refute @slot.ring.answer(200, {}, ["a"])
    refute @slot.ring.answer_bytes(["a"], false)
    assert_equal RingSlot::OVER_CONNECTION, @slot.report.first
  end

  def test_a_process_that_was_forked_cannot_answer
    take
    said = IO.popen("-") do |child|
      if child.nil?
        ring = @slot.ring
        print [ring.answer(200, {}, ["a"]), ring.answer_bytes(["a"], false), ring.over_connection,
               ring.take, ring.detach].inspect
        exit!(0) if $stdout.flush
      end
      child.read
    end
    assert_equal "[false, false, false, false, nil]", said
    assert @slot.ring.answer(200, {}, ["the parent's"])
    assert @slot.report.last.end_with?("the parent's")
  end

  def test_a_detached_ring_does_nothing
    take
    @slot.ring.detach
    @slot.ring.detach
    refute @slot.ring.take
    refute @slot.ring.answer(200, {}, ["a"])
    refute @slot.ring.answer_bytes(["a"], false)
    refute @slot.ring.over_connection
    assert_nil @slot.ring.cleaned_up
  end

  def test_only_attaching_makes_a_ring
    assert_raises(NoMethodError) { Kirin::Ring.new }
    assert_raises(TypeError) { Kirin::Ring.allocate }
    assert_raises(TypeError) { Kirin::Ring.attach_to(0, Process.ppid, nil) }
  end

  def test_a_signal_ends_the_wait
    ours, = Thread.main, nil
    reader, writer = IO.pipe
    before = trap("USR1") { writer.write("x") }
    pid = fork do
      sleep(0.01) until File.read("/proc/#{Process.ppid}/syscall").split.first =~ /\A(202|98)\z/
      Process.kill(:USR1, Process.ppid)
      exit!(0)
    end
    assert_nil @slot.ring.take
    assert_equal "x", reader.read_nonblock(1)
    Process.wait(pid)
    assert_same ours, Thread.current
  ensure
    trap("USR1", before) if before
  end

  def test_other_threads_run_while_the_worker_waits
    put = Thread.new do
      sleep(0.01) until Thread.main.status == "sleep"
      @slot.put(request([%w[A one]]))
    end
    assert_equal "one", @slot.take["A"]
    put.join
    answer
  end

  # ---------------------------------------------------------------- memory

  def test_with_a_collection_at_each_allocation
    wanted = nil
    10.times do |number|
      pairs = FrontConnection::DEFAULTS.merge("HTTP_X_#{number % 2}" => "x" * 50)
      bytes = request(pairs, body: "b" * 99)
      @slot.put(bytes)
      GC.stress = true
      environment = @slot.take
      body = @slot.ring.body
      is_made = @slot.ring.answer(200, { "x-a" => ["b" * 40, 5], "c" => "d\ne" }, ["x" * 99, "y"])
      GC.stress = false
      assert is_made
      assert_equal "b" * 99, body
      assert_equal "x" * 50, environment["HTTP_X_#{number % 2}"]
      wanted ||= "HTTP/1.1 200\r\nx-a: #{"b" * 40}\r\nx-a: 5\r\nc: d\r\nc: e\r\n" \
                 "Content-Length: 100\r\n\r\n#{"x" * 99}y"
      assert_equal [RingSlot::ANSWERED, wanted], @slot.report
    end
  ensure
    GC.stress = false
  end

  def test_after_a_compaction
    GC.verify_compaction_references(toward: :empty, double_heap: true) if
      GC.respond_to?(:verify_compaction_references)
    bytes = request(random_pairs(1))
    assert_equal environment_of(bytes), take(bytes)
    answer
  rescue NotImplementedError
    skip "this Ruby does not compact"
  end

  def test_memory_does_not_grow
    pages = -> { File.read("/proc/self/statm").split[1].to_i }
    round = lambda do
      20_000.times do |number|
        take(request([["A", number.to_s], ["HTTP_X_#{number}", "x" * 50]], body: "b" * 50))
        @slot.ring.body
        @slot.ring.answer(200, { "a" => number.even? ? "b" : "\0" }, ["x" * 99]) ||
          @slot.ring.answer_bytes(["x"], false)
        @slot.report
      end
      GC.start
    end
    2.times { round.call }
    before = pages.call
    round.call
    # A lost string in each request would be at least 400 pages.
    assert_operator pages.call - before, :<, 200, "pages more after many requests"
  end
end
