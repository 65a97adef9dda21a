# frozen_string_literal: true

require_relative "programs"

# Items of the sites that share a store.
class SiteTest < StoreTest
  def teardown
    Kirin::Site.of_process = nil
  end

  def test_keys_and_tags_are_those_of_the_site_of_the_request
    Kirin::Site.of_process = "example.org"
    store.set("a", 1, tags: ["t"])
    Kirin::Site.of_process = nil
    assert_nil store.get("a")
    assert_equal 1, store.get("example.org:a")
    assert_equal 0, store.purge(tags: "t")
    assert_equal 1, new_store(site: "example.org").purge(tags: "t")
    assert_nil store.get("example.org:a")
  end

  def test_a_store_of_one_site_uses_no_other
    Kirin::Site.of_process = "example.org"
    new_store(site: "other.org").set("a", 1)
    new_store(site: "").set("b", 2)
    Kirin::Site.of_process = nil
    assert_equal({ "other.org:a" => 1, "b" => 2 }, store.get_multi("other.org:a", "b"))
  end

  def test_a_block_of_code_chooses_a_site_for_its_thread
    Kirin::Site.of_process = "example.org"
    Kirin::Store.in_site("other.org") do
      assert_equal "other.org", Kirin::Store.current_site
      assert_equal "other.org", Enumerator.new { |y| y << Kirin::Store.current_site }.next
      Kirin::Store.in_site("") { assert_equal "", Kirin::Store.current_site }
      assert_equal "example.org", Thread.new { Kirin::Store.current_site }.value
    end
    assert_equal "example.org", Kirin::Store.current_site
    assert_raises(IndexError) { Kirin::Store.in_site("x") { raise IndexError } }
    assert_equal "example.org", Kirin::Store.current_site
    ["a:b", "a,b", "a b", nil, "a\n"].each do |name|
      assert_raises(ArgumentError, name.inspect) { Kirin::Store.in_site(name) { flunk } }
    end
  end
end
