# frozen_string_literal: true

require_relative "programs"
require "logger"
require "active_support"
require "active_support/cache"
require "active_support/core_ext/numeric/time"
require "active_support/testing/time_helpers"

# The cache of Rails in a real store.
class CacheStoreTest < StoreTest
  include ActiveSupport::Testing::TimeHelpers

  SECRET = "0123456789abcdef" * 4

  # An object with a key and a version, as a row of a database.
  Row = Struct.new(:cache_key, :cache_version)

  attr_reader :cache

  def setup
    super
    @cache = new_cache
  end

  def new_cache(**options)
    ActiveSupport::Cache.lookup_store(:kirin_store, self.class.memcached.address,
                                      { secret: SECRET, **options })
  end

  def test_any_object_comes_back
    [nil, false, true, 1, 1.5, "text ä", "\xFF".b, :symbol, [1, { a: 2 }], Time.at(0), 1..2,
     Row.new("a", "b"), "x" * 100_000, { "x" * 2000 => nil }].each do |value|
      assert cache.write("a", value)
      value.nil? ? assert_nil(cache.read("a")) : assert_equal(value, cache.read("a"))
      assert cache.exist?("a")
    end
    assert_equal "x", cache.fetch("a") { flunk } if cache.write("a", "x")
    assert_raises(TypeError) { cache.write("a", proc {}) }
  end

  def test_fetch_writes_what_is_missing
    assert_equal 1, cache.fetch("a") { 1 }
    assert_equal 1, cache.fetch("a") { flunk }
    assert_equal 2, cache.fetch("a", force: true) { 2 }
    assert_equal 2, cache.read("a")
    assert_nil cache.fetch("b", skip_nil: true) { nil }
    refute cache.exist?("b")
    assert_nil cache.fetch("b") { nil }
    assert cache.exist?("b")
    assert_equal({ "a" => 2, "c" => "c!" }, cache.fetch_multi("a", "c") { |name| "#{name}!" })
    assert_equal "c!", cache.read("c")
  end

  def test_an_item_that_exists_is_not_replaced_with_unless_exist
    assert cache.write("a", 1, unless_exist: true)
    refute cache.write("a", 2, unless_exist: true)
    assert_equal 1, cache.read("a")
  end

  def test_entries_are_deleted
    cache.write_multi({ "a" => 1, "b" => 2, "c" => 3 })
    assert cache.delete("a")
    refute cache.delete("a")
    assert_equal 2, cache.delete_multi(%w[a b c])
    refute cache.exist?("c")
  end

  def test_many_at_once
    values = (0...300).to_h { |i| ["k#{i}", { n: i }] }
    cache.write_multi(values)
    assert_equal values, cache.read_multi(*values.keys, "none")
    assert_equal({}, cache.read_multi)
    assert_equal({ %w[a b] => 1 }, cache.read_multi(%w[a b])) if cache.write(%w[a b], 1)
  end

  def test_entries_end_after_their_time
    cache.write("a", 1, expires_in: 60)
    assert_includes [59, 60], raw("mg rails:a t")[/\d+/].to_i
    travel 61 do
      assert_nil cache.read("a")
      refute cache.exist?("a")
      assert_equal({}, cache.read_multi("a"))
    end
    refute cache.exist?("a"), "it is deleted"
    cache.write("a", 1, expires_in: 1.hour)
    assert_in_delta 3600, raw("mg rails:a t")[/\d+/].to_i, 2
    assert_equal 1, new_cache(expires_in: 10).fetch("b") { 1 }
    assert_in_delta 10, raw("mg rails:b t")[/\d+/].to_i, 1
    cache.write("a", 1)
    assert_equal "HD t-1", raw("mg rails:a t")
  end

  def test_one_reader_renews_an_entry_that_has_just_ended
    options = { expires_in: 60, race_condition_ttl: 10 }
    cache.fetch("a", options) { "old" }
    travel 61 do
      made = cache.fetch("a", options) do
        assert_equal "old", cache.fetch("a", options) { flunk "another reader renews it" }
        "new"
      end
      assert_equal "new", made
      assert_equal "new", cache.read("a")
    end
    cache.fetch("b", options) { "old" }
    travel(71) { assert_equal "new", cache.fetch("b", options) { "new" } }
    assert_operator raw("mg rails:b t")[/\d+/].to_i, :>=, 60 + 300 - 5
  end

  def test_numbers_are_counted_in_the_store
    cache.write("n", 1, raw: true)
    assert_equal "1", cache.read("n", raw: true)
    assert_equal 2, cache.increment("n")
    assert_equal 12, cache.increment("n", 10)
    assert_equal 9, cache.decrement("n", 3)
    assert_equal 9, cache.read("n").to_i
    assert_equal 8, cache.increment("n", -1)
    assert_equal 0, cache.decrement("n", 100)
    assert_equal 5, cache.increment("new", 5, expires_in: 60)
    assert_equal 6, cache.increment("new", 1, expires_in: 60)
    assert_includes [59, 60], raw("mg rails:new t")[/\d+/].to_i
    assert_equal 0, cache.decrement("none")
  end

  def test_raw_values_are_read_by_other_programs
    cache.write("a", "text ä", raw: true)
    assert_equal "text ä", store.get("rails:a")
    assert_equal "text ä", cache.read("a", raw: true)
    assert_equal "text ä", cache.read("a")
    store.set("rails:b", 7)
    assert_equal "7", cache.read("b", raw: true)
    assert_equal({ "a" => "text ä", "b" => "7" }, cache.read_multi("a", "b", raw: true))
  end

  def test_an_entry_with_another_version_is_a_miss
    cache.write(Row.new("row/1", "v1"), "old")
    assert_equal "old", cache.read(Row.new("row/1", "v1"))
    assert_nil cache.read(Row.new("row/1", "v2"))
    refute cache.exist?(Row.new("row/1", "v2"))
    assert_equal "new", cache.fetch(Row.new("row/1", "v2")) { "new" }
    assert_equal({}, cache.read_multi(Row.new("row/1", "v1")))
  end

  def test_a_namespace_has_its_own_entries
    one = new_cache(namespace: "one")
    two = new_cache(namespace: -> { "two" })
    one.write("a", 1)
    two.write("a", 2)
    cache.write("b", 3)
    store.set("other", 4)
    assert_equal [1, 2], [one.read("a"), two.read("a")]
    assert_equal 1, cache.read("a", namespace: "one")
    two.clear
    assert_equal [1, nil], [one.read("a"), two.read("a")]
    cache.clear
    assert_nil one.read("a")
    assert_nil cache.read("b")
    assert_equal 4, store.get("other")
  end

  def test_any_text_is_a_key
    keys = ["a b", "ä", "a\r\nflush_all", "%20", "x" * 1000, "x" * 1001, "\xFF".b, "a%b",
            [1, :a, "b"], { x: 1 }, :symbol, 7, "#{'ä' * 100}1", "#{'ä' * 100}2"]
    keys.each_with_index { |key, i| cache.write(key, i) }
    keys.each_with_index { |key, i| assert_equal i, cache.read(key), key.inspect }
    assert_equal keys.size, cache.read_multi(*keys.map { |k| k.is_a?(Hash) ? [k] : k }).size
  end

  def test_no_entry_is_a_page
    Serving.run do |server|
      cache = ActiveSupport::Cache::KirinStore.new(server.address, secret: SECRET)
      cache.write("/secret", "text/plain\r\nsecret", raw: true)
      assert_equal 404, server.get("/secret").first
      assert_equal 404, server.get("/rails:/secret").first
    end
  end

  def test_an_entry_without_the_right_signature_is_a_miss
    cache.write("a", "value")
    bytes = store.get("rails:a")
    forged = [bytes[0, 32] + Marshal.dump(ActiveSupport::Cache::Entry.new("forged")), bytes[32..],
              "", bytes[0, 31], bytes[0..-2]]
    forged.each do |data|
      write_signed("rails:a", data)
      assert_nil cache.read("a"), data.inspect
      assert_equal({}, cache.read_multi("a"))
    end
    write_signed("rails:b", bytes)
    assert_nil cache.read("b"), "the signature belongs to the key"
    write_signed("rails:a", bytes)
    assert_equal "value", cache.read("a")
    assert_nil new_cache(secret: "another").read("a")
    assert_equal "new", new_cache(secret: "another").fetch("a") { "new" }
  end

  # Stores bytes with the flags of an entry.
  def write_signed(key, bytes)
    data = Kirin::Store::SignedEntry.load(bytes)
    new_store(serializer: Kirin::Store::SignedEntry).set(key, data)
  end

  def test_what_is_no_entry_is_never_given_to_marshal
    store.set("rails:a", Marshal.dump(ActiveSupport::Cache::Entry.new("forged")))
    assert_kind_of String, cache.read("a")
    refute_equal "forged", cache.read("a")
  end

  def test_without_a_secret_there_is_no_cache
    ["", nil, 7].each do |secret|
      error = assert_raises(ArgumentError, secret.inspect) { new_cache(secret: secret) }
      assert_match(/secret/, error.message)
    end
  end

  def test_tags_remove_entries_and_pages
    cache.write("a", 1, tags: ["menu"])
    cache.fetch("b", tags: %w[menu x]) { 2 }
    cache.write("n", 1, raw: true, tags: ["menu"])
    cache.write_multi({ "c" => 3 }, tags: ["menu"])
    store.set_page("/menu", "text/plain", "x", tags: ["menu"])
    cache.write("d", 4)
    assert_equal 1, cache.purge(tags: ["menu"])
    assert_equal({ "d" => 4 }, cache.read_multi("a", "b", "c", "d", "n"))
    assert_nil store.get("/menu")
  end

  def test_a_store_that_is_away_is_an_empty_cache_and_logged
    log = StringIO.new
    before = ActiveSupport::Cache::Store.logger
    ActiveSupport::Cache::Store.logger = Logger.new(log, level: Logger::INFO)
    cache = ActiveSupport::Cache::KirinStore.new("unix:/nowhere/store", secret: SECRET)
    assert_nil cache.read("a")
    refute cache.write("a", 1)
    assert_equal 2, cache.fetch("a") { 2 }
    assert_equal({}, cache.read_multi("a", "b"))
    refute cache.delete("a")
    refute cache.exist?("a")
    assert_nil cache.increment("n")
    cache.write_multi({ "a" => 1 })
    cache.delete_multi(["a"])
    cache.clear
    assert_nil cache.purge(tags: "t")
    assert_equal 1, log.string.scan("kirin: cache: unix:/nowhere/store: No such file").size
  ensure
    ActiveSupport::Cache::Store.logger = before
  end

  def test_a_local_cache_asks_the_store_once
    cache.write("a", 1)
    cache.write("n", 5, raw: true)
    cache.with_local_cache do
      assert_equal 1, cache.read("a")
      new_cache.write("a", 2)
      assert_equal 1, cache.read("a")
      cache.write("a", 3)
      assert_equal 3, cache.read("a")
      assert_equal 6, cache.increment("n")
      assert_equal "6", cache.read("n", raw: true).to_s
      cache.write("r", 7, raw: true)
      assert_equal "7", cache.read("r", raw: true)
      assert_equal({ "a" => 3, "r" => "7" }, cache.read_multi("a", "r"))
      cache.delete("a")
      assert_nil cache.read("a")
    end
    assert_nil cache.read("a")
  end

  def test_a_cache_belongs_to_the_site_of_the_request
    Kirin::Store.in_site("shop.test") { cache.write("a", 1) }
    assert_nil cache.read("a")
    assert_equal 1, new_cache(site: "shop.test").read("a")
  end

  def test_operations_are_notified
    events = []
    subscriber = ActiveSupport::Notifications.subscribe(/\Acache_/) { |name, *| events << name }
    cache.fetch("a") { 1 }
    cache.increment("n")
    assert_includes events, "cache_read.active_support"
    assert_includes events, "cache_write.active_support"
    assert_includes events, "cache_increment.active_support"
  ensure
    ActiveSupport::Notifications.unsubscribe(subscriber)
  end
end
