# frozen_string_literal: true

require_relative "programs"

# What each method sends, returns and raises.
class StoreMethodsTest < StoreTest
  def test_values_keep_their_type
    values = ["text ä", "", "\xFF\x00\r\n".b, 7, -3, 2**70, 1.5, true, false, nil, [1, [2, "x"]],
              { "a" => { "b" => [nil] } }]
    values.each do |value|
      assert store.set("a", value)
      found = store.get("a")
      value.nil? ? assert_nil(found) : assert_equal(value, found)
      assert_equal value.encoding, found.encoding if value.is_a?(String)
    end
  end

  def test_symbols_and_keys_come_back_as_strings
    store.set("a", { kind: :new, 7 => [:x] })
    assert_equal({ "kind" => "new", "7" => ["x"] }, store.get("a"))
  end

  def test_text_in_another_encoding_is_stored_as_utf8
    store.set("a", "ä".encode("ISO-8859-1"))
    assert_equal "ä", store.get("a")
    store.set("a", { "x" => "ä".encode("UTF-16LE") })
    assert_equal({ "x" => "ä" }, store.get("a"))
  end

  def test_a_string_that_is_no_text_is_bytes
    store.set("a", "\xFF")
    assert_equal "\xFF".b, store.get("a")
    assert_equal Encoding::BINARY, store.get("a").encoding
  end

  def test_objects_that_json_would_turn_into_text_are_refused
    cycle = []
    cycle << cycle
    [Time.now, Object.new, { "a" => [Rational(1, 2)] }, Float::NAN, [Float::INFINITY], cycle,
     ["\xFF"], { [1] => 2 }, Class].each do |value|
      error = assert_raises(Kirin::Store::InvalidArgument, value.class) { store.set("a", value) }
      assert_match(/\Athe value cannot be stored: /, error.message)
    end
    assert_nil store.get("a")
  end

  def test_a_serializer_takes_all_other_objects
    marshal = new_store(serializer: Marshal)
    point = Struct.new(:x).new(1)
    self.class.const_set(:Point, point.class) unless self.class.const_defined?(:Point)
    point = self.class.const_get(:Point).new(:a)
    marshal.set("a", point)
    assert_equal point, marshal.get("a")
    assert_equal Marshal.dump(point), store.get("a"), "without a serializer they are bytes"
    marshal.set("n", 5)
    assert_equal 6, marshal.incr("n")
    assert_raises(Kirin::Store::InvalidArgument) { marshal.set("a", proc {}) }
  end

  def test_what_another_language_has_serialized_is_never_loaded
    loaded = []
    spy = Object.new
    spy.define_singleton_method(:dump) { |_| "" }
    spy.define_singleton_method(:load) { |data| loaded << data }
    raw("set a 32 0 1\r\nx")
    raw("set b 1 0 1\r\ny")
    assert_equal "x", new_store(serializer: spy).get("a")
    assert_equal "y", new_store(serializer: spy).get("b")
    assert_empty loaded
  end

  def test_add_replace_and_delete_say_whether_they_did_it
    refute store.replace("a", 1)
    assert store.add("a", 1)
    refute store.add("a", 2)
    assert store.replace("a", 3)
    assert_equal 3, store.get("a")
    assert store.delete("a")
    refute store.delete("a")
    assert_nil store.get("a")
  end

  def test_append_adds_to_a_string_and_keeps_its_kind
    refute store.append("a", "x")
    store.set("a", "ä")
    assert store.append("a", "ö")
    assert_equal "äö", store.get("a")
    assert_raises(Kirin::Store::InvalidArgument) { store.append("a", 7) }
  end

  def test_numbers_are_counted_in_the_store
    assert_nil store.incr("n")
    store.set("n", 10)
    assert_equal 11, store.incr("n")
    assert_equal 9, store.decr("n", 2)
    assert_equal 9, store.get("n")
    assert_equal 0, store.decr("n", 100)
    assert_equal 0, store.get("n"), "the store pads shorter numbers"
    assert_equal 5, store.incr("new", 1, initial: 5, ttl: 60)
    assert_equal 6, store.incr("new", 1, initial: 5)
    store.set("text", "x")
    assert_match(/non-numeric/, assert_raises(Kirin::Store::Error) { store.incr("text") }.message)
    [-1, 2**64, 1.5, nil].each do |by|
      assert_raises(Kirin::Store::InvalidArgument) { store.incr("n", by) }
    end
  end

  def test_processes_that_count_at_the_same_time_lose_nothing
    children = Array.new(4) do
      fork do
        50.times { store.incr("n", 1, initial: 1) }
      ensure
        exit!(0)
      end
    end
    children.each { |pid| Process.wait(pid) }
    assert_equal 200, store.get("n")
  end

  def test_cas_stores_only_over_what_it_has_read
    assert_nil store.cas("a") { flunk "there is no item" }
    store.set("a", [1])
    assert_equal(true, store.cas("a") { |list| list + [2] })
    assert_equal [1, 2], store.get("a")
    stored = store.cas("a") do |list|
      store.set("a", "other")
      list
    end
    assert_equal false, stored
    assert_equal "other", store.get("a")
    number, = store.gets("a")
    assert store.set_cas("a", number, 3, 60, tags: ["t"])
    refute store.set_cas("a", number, 4)
    assert_equal 1, store.purge(tags: "t")
    assert_raises(Kirin::Store::InvalidArgument) { store.set_cas("a", "1", 2) }
  end

  def test_many_items_at_once
    values = (0...2500).to_h { |i| ["k#{i}", "v" * (i % 3000)] }
    assert store.set_multi(values, 60)
    assert_equal values, store.get_multi(values.keys + ["none"])
    assert_equal({ k1: "v" }, store.get_multi(:k1))
    assert_equal({}, store.get_multi)
    assert store.set_multi({})
  end

  def test_a_refused_item_does_not_hide_the_others
    too_large = "x" * (2 * 1024 * 1024)
    error = assert_raises(Kirin::Store::Error) do
      store.set_multi({ "a" => 1, "large" => too_large, "b" => 2 })
    end
    assert_match(/too large/, error.message)
    assert_equal({ "a" => 1, "b" => 2 }, store.get_multi("a", "b", "large"))
    assert_raises(Kirin::Store::Error) { store.set("large", too_large) }
    assert store.set("a", 2), "the connection is used no more"
  end

  def test_items_end_after_their_time
    store.set("gone", 1, -1)
    assert_nil store.get("gone")
    store.set("soon", 1, 0.2)
    wait_until("the item ends") { store.get("soon").nil? }
    store.set("a", 1, 60)
    assert_equal "60", raw("mg a t")[/t(\d+)/, 1]
    store.touch("a", 3600)
    assert_includes %w[3600 3599], raw("mg a t")[/t(\d+)/, 1]
    refute store.touch("none", 1)
    store.set("a", 1)
    assert_equal "HD t-1", raw("mg a t")
  end

  def test_a_time_to_live_is_always_a_duration
    month = 40 * 24 * 60 * 60
    store.set("a", 1, month)
    assert_in_delta month, raw("mg a t")[/t(\d+)/, 1].to_i, 60
    store.set("a", 1, 200 * 365 * 24 * 60 * 60)
    assert_equal "HD t-1", raw("mg a t")
    ["60", Float::NAN, Float::INFINITY, Complex(1, 1), :x].each do |ttl|
      assert_raises(Kirin::Store::InvalidArgument, ttl.inspect) { store.set("a", 1, ttl) }
    end
  end

  def test_keys_that_cannot_be_are_refused_before_anything_is_sent
    ["", "a b", "a\r\nflush_all", "x" * 251, "a\x7f", "a\0", 7, nil, "ä" * 126].each do |key|
      assert_raises(Kirin::Store::InvalidArgument, key.inspect) { store.set(key, 1) }
      assert_raises(Kirin::Store::InvalidArgument, key.inspect) { store.get_multi("a", key) }
    end
    assert store.set("x" * 250, 1)
    assert store.set("ä", 1)
    assert_equal 1, store.get("ä".b)
    assert_equal 1, store.get("ä".encode("ISO-8859-1"))
    store.set(:symbol, 2)
    assert_equal 2, store.get("symbol")
  end

  def test_tags_that_cannot_be_are_refused
    [["a,b"], ["a b"], [""], ["x" * 65], Array.new(17, &:to_s), [nil]].each do |tags|
      assert_raises(Kirin::Store::InvalidArgument, tags.inspect) { store.set("a", 1, tags: tags) }
    end
    assert store.set("a", 1, tags: Array.new(16, &:to_s))
  end

  def test_a_purge_counts_the_names_that_had_items
    store.set("a", 1, tags: "t")
    store.set("p/1", 1)
    assert_equal 2, store.purge(keys: %w[none], prefixes: "p/", tags: ["t"])
    assert_equal({}, store.get_multi("a", "p/1"))
    assert_equal 0, store.purge
    keys = (0...300).map { |i| "k#{i}" }
    store.set_multi(keys.to_h { |key| [key, 1] })
    assert_equal 300, store.purge(keys: keys)
  end

  def test_fetch_stores_what_the_block_returns
    assert_equal [1], store.fetch("a", 60, tags: ["t"]) { [1] }
    assert_equal [1], store.fetch("a") { flunk "it is stored" }
    store.purge(tags: "t")
    assert_nil store.get("a")
    assert_raises(Kirin::Store::InvalidArgument) { store.fetch("a") { Object.new } }
    assert_raises(Kirin::Store::InvalidArgument) { store.fetch("a b") { 1 } }
  end

  def test_after_a_soft_purge_one_caller_renews
    store.set("a", "old", tags: ["t"])
    store.purge(tags: "t", soft: true)
    made = store.fetch("a") do
      assert_equal "old", store.fetch("a") { flunk "another caller renews it" }
      "new"
    end
    assert_equal "new", made
    assert_equal "new", store.get("a")
  end

  def test_a_caller_that_fails_leaves_the_renewal_to_the_next
    store.set("a", "old")
    store.purge(keys: "a", soft: true)
    assert_raises(IndexError) { store.fetch("a") { raise IndexError } }
    assert_equal "new", store.fetch("a") { "new" }
    store.purge(keys: "a", soft: true)
    catch(:out) { store.fetch("a") { throw :out } }
    assert_equal "newer", store.fetch("a") { "newer" }
  end

  def test_options_that_cannot_be
    [{ timeout: 0 }, { timeout: "1" }, { timeout: Float::NAN }, { site: "a:b" }, { site: "a,b" },
     { serializer: Object.new }].each do |options|
      assert_raises(ArgumentError, options.inspect) { Kirin::Store.new("unix:x", **options) }
    end
    assert_raises(ArgumentError) { Kirin::Store.new(["unix:x"]) }
  end

  def test_a_namespace_is_before_each_key
    store.set("n:a", 1)
    assert_equal 1, new_store(namespace: "n:").get("a")
    assert_raises(Kirin::Store::InvalidArgument) { new_store(namespace: "n n").get("a") }
  end

  def test_the_default_store_is_that_of_the_environment
    before = ENV.fetch("KIRIN_STORE", nil)
    ENV["KIRIN_STORE"] = self.class.memcached.address
    assert Kirin::Store.default.set("a", 1)
    assert_same Kirin::Store.default, Kirin::Store.default
    ENV.delete("KIRIN_STORE")
    error = assert_raises(Kirin::Store::Error) { Kirin::Store.default.get("a") }
    assert_match(/KIRIN_STORE is not set/, error.message)
  ensure
    ENV["KIRIN_STORE"] = before
  end
end
