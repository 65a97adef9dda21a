# frozen_string_literal: true

require_relative "example"

# What the store has when processes race or die.
#
# The other tests of the store are for all languages: ../memo/t with MEMO_APP=ruby.
class RacesTest < Minitest::Test
  # A process that dies in the middle of something.
  class Killed < StandardError; end

  attr_reader :site

  def setup
    @example = SiteWithStore.new
    @site = @example.site
  end

  def teardown
    @example.close
  end

  def item(key)
    @example.item(key)
  end

  def new_user(name)
    site.users.sign_up(name, "a good password")
  end

  def test_a_page_rendered_before_a_memo_is_not_stored_after_it
    author = new_user("bea").id
    site.memos.create(author, "One", false)
    version = site.memos.public_total
    old = site.pages.render("/")
    assert site.pages.store.push("/", old, version)
    assert_includes item("/"), ">One<"

    # Its writer has not come to settle yet.
    site.memos.create(author, "Two", false)
    refute site.pages.store.push("/", old, version)
    assert_nil item("/")
  end

  def test_a_list_is_gone_before_its_memo_is_there
    mari = new_user("mari").id
    secret = site.memos.find(site.memos.create(mari, "Secret", true))
    key = "author/#{mari}/private"
    site.private_pages.neighbours(secret)
    assert_equal secret["id"].to_s, item(key)

    assert_raises(Killed) do
      site.memos.create(mari, "Lost", true) do
        site.private_pages.author_writes(mari)
        raise Killed
      end
    end
    assert_nil item(key)
    site.private_pages.neighbours(secret)
    assert_equal secret["id"].to_s, item(key)
  end

  def test_a_copy_is_not_written_after_its_session_has_ended
    mari = new_user("mari")
    token = site.sessions.start(mari, nil)
    refute_nil item(token)
    session = site.sessions.find(token)
    other = @example.another
    other.sessions.end(token)
    other.database.close
    assert_nil item(token)

    # This process has seen the session before the other one ended it.
    found = []
    site.sessions.items.keep(token, session["expires_at"]) do
      found << site.sessions.find(token)
      found.last
    end
    assert_equal [nil], found
    assert_nil item(token)
  end
end
