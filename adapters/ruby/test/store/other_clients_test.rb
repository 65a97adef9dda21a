# frozen_string_literal: true

require "json"
require_relative "programs"
require_relative "browser"
require "kirin/store/rack_session"

# What the clients for Ruby, Python and Perl read of each other.
class OtherClientsTest < StoreTest
  PYTHON = File.join(REPOSITORY, "adapters/python/src")
  PERL = File.join(REPOSITORY, "adapters/perl/lib")

  # What JSON holds. All three languages have it.
  DATA = { "list" => [1, "ä", nil, true], "nested" => { "x" => 1.5 } }.freeze

  # Runs a program with the address of the store, and returns what it prints.
  def run_program(*command)
    output, status = Open3.capture2e({ "KIRIN_STORE" => self.class.memcached.address,
                                       "PYTHONPATH" => PYTHON }, *command)
    assert status.success?, output
    output.force_encoding("UTF-8")
  end

  def python(code)
    run_program("python3", "-c", <<~PYTHON)
      from kirin.store import Store
      from kirin.store.session import VisitorSession
      store = Store()
      #{code}
    PYTHON
  end

  def perl(code)
    run_program("perl", "-I#{PERL}", "-MKirin::Store", "-MJSON::PP", "-e", <<~PERL)
      my $store = Kirin::Store->new;
      my $json = JSON::PP->new->utf8->canonical->allow_nonref;
      #{code}
    PERL
  end

  def test_python_reads_what_ruby_writes
    store.set("data", DATA)
    store.set("text", "ä")
    store.set("bytes", "\xFF".b)
    store.set("n", 5)
    store.set("object", [1], tags: ["t"])
    lines = python(<<~PYTHON).lines(chomp: true)
      print(ascii(store.get("data")))
      print(ascii([store.get("text"), store.get("bytes"), store.get("n"), store.incr("n")]))
      print(store.purge(tags="t"))
    PYTHON
    assert_equal ["{'list': [1, '\\xe4', None, True], 'nested': {'x': 1.5}}",
                  "['\\xe4', b'\\xff', 5, 6]", "1"], lines
    assert_equal 6, store.get("n")
  end

  def test_ruby_reads_what_python_writes
    python(<<~'PYTHON')
      assert store.set("data", {"list": [1, "\xe4", None, True], "nested": {"x": 1.5}}), store.error
      store.set("text", "\xe4"); store.set("bytes", b"\xff"); store.set("n", 5)
      import pickle
      Store(serializer=pickle).set("pickle", {1})
    PYTHON
    assert_equal DATA, store.get("data")
    assert_equal ["ä", "\xFF".b, 6], [store.get("text"), store.get("bytes"), store.incr("n")]
    assert_kind_of String, new_store(serializer: Marshal).get("pickle")
  end

  def test_perl_reads_what_ruby_writes
    store.set("data", DATA)
    store.set("text", "ä")
    store.set("n", 5)
    printed = perl(<<~'PERL')
      print $json->encode($store->get("data")), "\n", $store->get("text"), "\n", $store->incr("n");
    PERL
    json, text, number = printed.lines(chomp: true)
    assert_equal [DATA, "ä", "6"], [JSON.parse(json), text, number]
  end

  def test_ruby_reads_what_perl_writes
    perl(<<~'PERL')
      $store->set("data", { list => [1, "\x{e4}", undef, JSON::PP::true], nested => { x => 1.5 } });
      $store->set("bytes", "\xFF"); $store->set("n", 5);
    PERL
    assert_equal DATA, store.get("data")
    assert_equal ["\xFF".b, 6], [store.get("bytes"), store.incr("n")]
  end

  def test_a_session_is_the_same_for_ruby_and_python
    inner = lambda do |env|
      env["rack.session"]["ruby"] = "r" if env["PATH_INFO"] == "/set"
      [200, {}, [env["rack.session"].to_hash.sort.inspect]]
    end
    visitor = Browser.new(Rack::Session::Kirin.new(inner, store: store))
    visitor.get("/set")
    id = visitor.cookies.fetch("rack.session")
    assert_equal "stored\n", python(<<~PYTHON)
      visitor = VisitorSession(store, #{id.inspect})
      visitor.load()
      assert visitor.content == {"ruby": "r"}, visitor.content
      visitor.content["python"] = "p"
      print(visitor.update(60).value)
    PYTHON
    assert_equal [%w[python p], %w[ruby r]].inspect, visitor.get
  end
end
