# frozen_string_literal: true

require_relative "programs"

# Pages that a running Kirin serves from its store, and their purge.
class PagesTest < ProgramTest
  def serving
    Serving.run { |server| yield server, Kirin::Store.new(server.address) }
  end

  def test_kirin_serves_pages_and_purges_them
    serving do |server, store|
      assert_equal 404, server.get("/memo/7").first
      store.set_page("/memo/7", "text/html; charset=UTF-8", "<h1>ä</h1>", 60, tags: ["memo"])
      status, head, body = server.get("/memo/7")
      assert_equal [200, "<h1>ä</h1>"], [status, body.force_encoding("UTF-8")]
      assert_match(%r{^content-type: text/html; charset=UTF-8\r?$}i, head)
      assert_equal 1, store.purge(tags: "memo")
      assert_equal 404, server.get("/memo/7").first
      store.set_page("/memo/8", "text/plain", %w[a b])
      assert_equal "ab", server.get("/memo/8").last
      assert_equal 1, store.purge(keys: "/memo/8", prefixes: [])
      assert_equal 404, server.get("/memo/8").first
    end
  end

  def test_kirin_serves_complete_responses
    serving do |server, store|
      headers = { "Location" => "/new", "X-A" => "1\n2", "x-b" => %w[3 4], "Content-Length" => "7",
                  "Connection" => "close", "rack.hijack" => proc {} }
      store.set_response("/old", [301, headers, ["moved"]])
      status, head, body = server.get("/old")
      assert_equal [301, "moved"], [status, body]
      fields = head.lines(chomp: true).drop(1).map { |line| line.split(": ", 2) }
      values = fields.group_by { |name, _| name.downcase }.transform_values { |f| f.map(&:last) }
      assert_equal ["/new"], values["location"]
      assert_equal %w[1 2], values["x-a"].join(", ").split(", ")
      assert_equal %w[3 4], values["x-b"].join(", ").split(", ")
      refute_includes values.keys, "rack.hijack"
    end
  end

  def test_a_page_belongs_to_its_site
    serving do |server, store|
      Kirin::Store.in_site("shop.test") { store.set_page("/a", "text/plain", "shop") }
      assert_equal 404, server.get("/a").first
      assert_equal "shop", server.get("/a", host: "shop.test").last
    end
  end

  def test_responses_that_cannot_be_are_refused
    store = Kirin::Store.new("unix:/nowhere")
    [[99, {}, []], ["2xx", {}, []], [200, { "a" => "b\r\nc: d" }, []], [200, { "a\n" => "b" }, []],
     [200, {}, nil], [200, {}, [1]], [200, {}], "200"].each do |response|
      assert_raises(Kirin::Store::InvalidArgument, response.inspect) do
        store.set_response("/", response)
      end
    end
    ["html", "", "text/html\r\nX: y", nil].each do |type|
      assert_raises(Kirin::Store::InvalidArgument, type.inspect) { store.set_page("/", type, "") }
    end
  end
end
