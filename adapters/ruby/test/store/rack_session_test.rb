# frozen_string_literal: true

require_relative "programs"
require_relative "browser"
require "kirin/store/rack_session"

# Sessions of Rack in a real store.
class RackSessionTest < StoreTest
  KEY = "rack.session"

  # Returns a browser at an application that is the block. It gets the session and its options.
  def browser(options = {}, &app)
    inner = lambda do |env|
      body = app.call(env["rack.session"], env["rack.session.options"], env)
      [200, { "Content-Type" => "text/plain" }, [body.to_s]]
    end
    Browser.new(Rack::Session::Kirin.new(inner, { store: store, **options }))
  end

  def visitor(options = {})
    browser(options) do |session, session_options, env|
      case env["PATH_INFO"]
      when "/set" then session.update(Rack::Utils.parse_query(env["QUERY_STRING"]))
      when "/show" then session.to_hash.inspect
      when "/delete" then session.delete(env["QUERY_STRING"])
      when "/clear" then session.clear
      when "/destroy" then session.destroy
      when "/again" then session.destroy && session.update("new" => "1")
      when "/drop" then session_options[:drop] = true
      when "/renew" then session_options[:renew] = true
      when "/skip" then session.update("x" => "y") && session_options[:skip] = true
      when "/id" then session.id
      when "/nested" then (session["list"] ||= []) << "x"
      when "/nothing" then "nothing"
      end
    end
  end

  def items
    items_of(self.class.memcached)
  end

  # Returns the keys in a store.
  def items_of(memcached)
    Socket.unix(memcached.path("store")) do |client|
      client.write("lru_crawler metadump all\r\n")
      lines = []
      while (line = client.gets.chomp) != "END"
        lines << line[/key=(\S+)/, 1]
      end
      lines
    end
  end

  def test_a_session_is_an_item_of_json_under_its_cookie
    guest = visitor
    guest.get("/set?name=Anna")
    id = guest.cookies[KEY]
    assert_match(/\A[0-9a-f]{40}\z/, id)
    assert_equal({ "name" => "Anna" }, store.get(id))
    assert_equal({ "name" => "Anna" }.inspect, guest.get("/show"))
    assert_equal id, guest.get("/id")
  end

  def test_what_does_not_use_the_session_costs_no_session
    guest = visitor
    %w[/nothing /show /clear /renew /skip /delete?x /id].each do |path|
      guest.get(path)
      assert_empty guest.set_cookie, path
    end
    assert_empty items
  end

  def test_the_cookie_is_sent_once_and_is_httponly
    guest = visitor(same_site: :lax, path: "/a")
    guest.get("/set?a=1")
    assert_match(%r{; path=/a; HttpOnly; SameSite=Lax\z}i, guest.set_cookie.first)
    guest.get("/set?a=2")
    assert_empty guest.set_cookie
  end

  def test_an_id_that_the_store_does_not_know_is_never_accepted
    chosen = "ab" * 20
    guest = visitor
    guest.cookies[KEY] = chosen
    guest.get("/set?a=1")
    refute_equal chosen, guest.cookies[KEY]
    assert_nil store.get(chosen)
    assert_equal({ "a" => "1" }, store.get(guest.cookies[KEY]))
  end

  def test_no_other_item_is_read_as_a_session
    store.set("cd" * 20, "secret")
    store.set("data", { "secret" => 1 })
    store.set("AB" * 20, { "secret" => 1 })
    ["cd" * 20, "data", "AB" * 20, "", "a" * 41, "%00", "ab" * 20 + "%0A"].each do |id|
      guest = visitor
      guest.cookies[KEY] = id
      assert_equal "{}", guest.get("/show"), id
    end
    assert_equal "secret", store.get("cd" * 20)
  end

  def test_an_id_is_only_in_a_cookie
    assert_raises(ArgumentError) { visitor(cookie_only: false) }
    guest = visitor
    guest.get("/set?a=1")
    thief = visitor
    assert_equal "{}", thief.get("/show?#{KEY}=#{guest.cookies[KEY]}")
  end

  def test_changes_at_any_depth_are_written_and_nothing_else
    guest = visitor
    guest.get("/nested")
    id = guest.cookies[KEY]
    number = store.gets(id).first
    guest.get("/show")
    assert_equal number, store.gets(id).first, "reading does not write"
    guest.get("/nested")
    assert_equal({ "list" => %w[x x] }, store.get(id))
  end

  def test_an_end_of_each_kind_removes_session_and_cookie
    %w[/clear /destroy /drop].each do |path|
      guest = visitor
      guest.get("/set?a=1")
      id = guest.cookies[KEY]
      guest.get(path)
      assert_nil store.get(id), path
      assert_nil guest.cookies[KEY], path
      assert_match(/max-age=0/i, guest.set_cookie.first)
      assert_equal "{}", guest.get("/show")
    end
    assert_empty items
  end

  def test_a_new_session_after_the_end_of_another_has_another_id
    guest = visitor
    guest.get("/set?a=1")
    id = guest.cookies[KEY]
    guest.get("/again")
    refute_equal id, guest.cookies[KEY]
    assert_nil store.get(id)
    assert_equal({ "new" => "1" }, store.get(guest.cookies[KEY]))
  end

  def test_renewal_gives_the_session_another_id
    guest = visitor
    guest.get("/set?a=1")
    id = guest.cookies[KEY]
    guest.get("/renew")
    refute_equal id, guest.cookies[KEY]
    assert_equal [guest.cookies[KEY]], items
    assert_equal({ "a" => "1" }.inspect, guest.get("/show"))
  end

  def test_a_session_lives_from_its_last_use
    guest = visitor(expire_after: 1000)
    guest.get("/set?a=1")
    assert_match(/expires=/i, guest.set_cookie.first)
    id = guest.cookies[KEY]
    raw("touch #{id} 10")
    guest.get("/show")
    assert_in_delta 1000, raw("mg #{id} t")[/\d+/].to_i, 5
    assert_match(/expires=/i, guest.set_cookie.first)
    raw("touch #{id} 10")
    guest.get("/show")
    assert_operator raw("mg #{id} t")[/\d+/].to_i, :<=, 10, "once in a tenth of its life"
    assert_empty guest.set_cookie
    guest.get("/nothing")
    assert_operator raw("mg #{id} t")[/\d+/].to_i, :<=, 10
  end

  def test_without_expire_after_the_cookie_ends_with_the_browser
    guest = visitor
    guest.get("/set?a=1")
    refute_match(/expires|max-age/i, guest.set_cookie.first)
    assert_in_delta 14 * 24 * 3600, raw("mg #{guest.cookies[KEY]} t")[/\d+/].to_i, 5
    guest = visitor(ttl: 60)
    guest.get("/set?a=1")
    assert_in_delta 60, raw("mg #{guest.cookies[KEY]} t")[/\d+/].to_i, 5
  end

  def test_a_secure_session_needs_tls
    guest = visitor(secure: true)
    guest.get("/set?a=1")
    assert_empty guest.set_cookie
    assert_empty items
    guest.get("/set?a=1", "HTTPS" => "on")
    assert_match(/; secure/i, guest.set_cookie.first)
  end

  def test_requests_at_the_same_time_are_merged
    guest = visitor
    guest.get("/set?a=1&b=1&c=1")
    twin = guest.twin
    slow = browser do |session, _, env|
      session["a"] = "slow"
      session.delete("c")
      twin.get("/set?b=fast&d=fast") if env["PATH_INFO"] == "/race"
    end
    slow.cookies.update(guest.cookies)
    slow.get("/race")
    assert_equal({ "a" => "slow", "b" => "fast", "d" => "fast" }, store.get(guest.cookies[KEY]))
  end

  def test_a_request_in_progress_does_not_bring_an_ended_session_back
    %w[/destroy /clear /drop /renew].each do |path|
      guest = visitor
      guest.get("/set?a=1")
      id = guest.cookies[KEY]
      slow = browser do |session|
        session["a"] = "slow"
        guest.get(path)
      end
      slow.cookies.update(guest.cookies)
      slow.get
      assert_nil store.get(id), path
      assert_empty slow.set_cookie, path
    end
  end

  def test_what_others_have_written_moves_with_a_session
    guest = visitor
    guest.get("/set?a=1")
    twin = guest.twin
    slow = browser do |session, options|
      session["b"] = "2"
      options[:renew] = true
      twin.get("/set?c=3")
    end
    slow.cookies.update(guest.cookies)
    slow.get
    assert_equal({ "a" => "1", "b" => "2", "c" => "3" }, store.get(slow.cookies[KEY]))
    assert_equal [slow.cookies[KEY]], items
  end

  def test_a_session_that_ends_while_its_id_changes_stays_ended
    guest = visitor
    guest.get("/set?a=1")
    slow = browser do |session, options|
      session["b"] = "2"
      options[:renew] = true
      guest.get("/destroy")
    end
    slow.cookies.update(guest.cookies)
    slow.get
    assert_empty items
    assert_empty slow.set_cookie
  end

  def test_many_writers_lose_nothing
    guest = visitor
    guest.get("/set?a=1")
    id = guest.cookies[KEY]
    children = Array.new(4) do |i|
      fork do
        20.times { |j| guest.twin.get("/set?k#{i}_#{j}=1") }
      ensure
        exit!(0)
      end
    end
    children.each { |pid| Process.wait(pid) }
    assert_equal 81, store.get(id).size
  end

  def test_a_value_that_json_cannot_hold_is_an_error_of_the_application
    guest = browser { |session| session["a"] = Time.now }
    error = assert_raises(Kirin::Store::InvalidArgument) { guest.get }
    assert_match(/session is not stored: .*Time/, error.message)
    assert_empty items
  end

  def test_a_store_that_is_away_ends_no_session
    Memcached.run do |memcached|
      @store = Kirin::Store.new(memcached.address)
      guest = visitor
      guest.get("/set?a=1")
      cookies = guest.cookies.dup
      content = store.get(cookies[KEY])
      memcached.stop
      %w[/show /set?a=2 /renew /clear].each do |path|
        guest.get(path)
        assert_equal cookies, guest.cookies, path
        assert_match(/kirin: session is not read: unix:/, guest.errors.string)
      end
      fresh = visitor
      fresh.get("/set?a=1")
      assert_empty fresh.set_cookie
      assert_match(/session is not stored/, fresh.errors.string)
      memcached.start
      store.set(cookies[KEY], content)
      assert_equal({ "a" => "1" }.inspect, guest.get("/show"))
    end
  end

  def test_a_session_that_could_not_be_read_is_not_replaced
    Memcached.run do |memcached|
      @store = Kirin::Store.new(memcached.address)
      guest = visitor
      guest.get("/set?a=1")
      memcached.stop
      slow = browser do |session|
        session["a"] = "slow"
        memcached.start
      end
      slow.cookies.update(guest.cookies)
      slow.get
      assert_empty slow.set_cookie
      assert_empty items_of(memcached)
    end
  end

  def test_pages_can_show_the_session
    Serving.run do |server|
      @store = Kirin::Store.new(server.address)
      guest = visitor
      guest.get("/set?name=Anna")
      store.set_page("/", "text/html; charset=UTF-8", '<!--# echo var="session.name" -->')
      id = guest.cookies[KEY]
      body = server.get("/", fields: "Cookie: #{KEY}=#{id}\r\n").last
      assert_equal "Anna", body
      guest.get("/destroy")
      body = server.get("/", fields: "Cookie: #{KEY}=#{id}\r\n").last
      refute_includes body, "Anna"
    end
  end

  def test_a_session_belongs_to_its_site
    guest = visitor
    Kirin::Store.in_site("shop.test") { guest.get("/set?a=1") }
    assert_equal "{}", guest.get("/show")
    Kirin::Store.in_site("shop.test") { assert_equal({ "a" => "1" }.inspect, guest.get("/show")) }
  end

  def test_it_is_a_correct_middleware
    inner = lambda do |env|
      env["rack.session"]["a"] = 1
      [200, { "Content-Type" => "text/plain" }, ["x"]]
    end
    app = Rack::Lint.new(Rack::Session::Kirin.new(Rack::Lint.new(inner), store: store))
    assert_equal "x", Browser.new(app).get
  end
end
