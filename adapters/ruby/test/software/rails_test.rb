# frozen_string_literal: true

require "open3"
require "rbconfig"
require_relative "cable"
require_relative "comparison"

# A site of Rails, compared with Puma.
module ShelfOfBooks
  TOKEN = /name="authenticity_token" value="([^"]+)"/.freeze
  # Tokens and nonces.
  RANDOM = [TOKEN, /(?:csrf-token|csp-nonce)" content="[^"]+"/, /nonce(?:-|=")[\w+\/=]+/].freeze
  LARGE = (0..255).to_a.pack("C*") * 12_000
  MEMBER = { "Authorization" => "Basic #{['ann:oak'].pack('m0')}" }.freeze

  # Fills the database.
  def self.prepare(directory)
    Dir.mkdir(File.join(directory, "tmp"))
    text, status = Open3.capture2e({ "RAILS_ENV" => "production" }, RbConfig.ruby, "db/fill.rb",
                                   chdir: directory)
    raise "db/fill.rb has failed:\n#{text}" unless status.success?
  end

  # Returns a form with the token for its action, from the page that a visitor saw last.
  def with_token(make, action, pairs)
    lambda do |visitor|
      form = visitor.last.text[%r{<form[^>]*action="#{action}".*?</form>}m] or
        raise "no form for #{action} in\n#{visitor.last}"
      send(make, [["authenticity_token", form[TOKEN, 1]], *pairs])
    end
  end

  def test_a_day_with_books
    step("the shelf", "GET", "/", 200, body: %r{<a href="/books/1">Kirin</a>, 7 pages,\s+8 bytes})
    step("the form", "GET", "/books/new", 200, body: TOKEN)
    step("no number", "POST", "/books", 422, body: /is not a number/,
         content: with_token(:form, "/books", [%w[book[title] Oaks], %w[book[pages] many]]))
    step("a form without a token", "POST", "/books", 422, body: /The page for 422/,
         content: form("book[title]" => "Oaks"))
    step("the form again", "GET", "/books/new", 200, body: TOKEN)
    step("a token from elsewhere", "POST", "/books", 422,
         content: with_token(:form, "/books", [%w[book[title] Oaks], %w[book[pages] 1]]),
         fields: { "Origin" => "https://evil.example" })
    step("the form once more", "GET", "/books/new", 200, body: TOKEN)
    file = ["麒麟.bin", "application/octet-stream", LARGE]
    step("a large book", "POST", "/books", 302, field: ["Location", "http://site.example/"],
         fields: { "Origin" => "http://site.example" },
         content: with_token(:multipart, "/books", [["book[title]", "Üble <Eichen>"],
                                                    %w[book[pages] 300], ["book[text]", file]]))
    step("its message", "GET", "/", 200,
         body: /notice">“Üble &lt;Eichen&gt;” is on the shelf.*300 pages,\s+3072000 bytes/m)
    step("is shown once", "GET", "/", 200, body: %r{<body>\n<ul>})
    found = step("its text", "GET", "/books/2/text", 200)
    assert_equal LARGE, found.body
    step("its page", "GET", "/books/2", 200, body: %r{<h1>Üble &lt;Eichen&gt;</h1>.*麒麟.bin}m)
    step("the form", "GET", "/books/2/edit", 200, body: /value="300"/)
    step("a change", "POST", "/books/2", 302, field: ["Location", "http://site.example/books/2"],
         content: with_token(:form, "/books/2", [%w[_method patch], %w[book[title] Eichen]]))
    step("the changed page", "GET", "/books/2", 200, body: /notice">saved.*<h1>Eichen/m)
    step("the titles", "GET", "/pages/cached", 200, body: /\AKirin\nEichen\z/)
    step("from the cache", "GET", "/pages/cached", 200, body: /\AKirin\nEichen\z/)
    step("a fragment", "GET", "/pages/fragment", 200, body: %r{<li>Kirin</li>.*<li>Eichen</li>}m)
    step("the shelf", "GET", "/", 200, body: /Eichen/)
    step("it goes", "POST", "/books/2", 303, field: ["Location", "http://site.example/books"],
         content: with_token(:form, "/books/2", [%w[_method delete]]))
    step("its message", "GET", "/", 200, body: /alert">gone/)
    step("it has gone", "GET", "/books/2", 404, body: /The page for 404/)
    step("from the cache, too", "GET", "/pages/cached", 200, body: /\AKirin\z/)
    assert_connections_kept
  end

  def test_sessions_cookies_and_redirects
    step("no member", "GET", "/pages/member", 302, field: ["Location", "http://site.example/"])
    step("a visit", "GET", "/pages/visits", 200, body: /\Avisit 1\z/)
    step("and another", "GET", "/pages/visits", 200, body: /\Avisit 2\z/)
    step("a member", "GET", "/pages/member", 200, body: /a member/)
    step("another session", "GET", "/pages/renewed", 200)
    step("goes on", "GET", "/pages/visits", 200, body: /\Avisit 3\z/)
    step("the end without a token", "DELETE", "/pages/session", 422)
    step("a token", "GET", "/", 200)
    token = lambda do |visitor|
      form("authenticity_token" => visitor.last.find(/csrf-token" content="([^"]+)/))
    end
    step("the end", "DELETE", "/pages/session", 200, content: token)
    step("a new session", "GET", "/pages/visits", 200, body: /\Avisit 1\z/)
    step("cookies", "GET", "/pages/jar", 200, body: /before: \[nil, nil, nil\]/)
    step("come back", "GET", "/pages/jar", 200, body: /"ä; b=c", "oak", {"name"=>"Käse"}/)
    step("a redirect", "GET", "/pages/redirect", 302,
         field: ["Location", "http://site.example/books?page=2&q=%C3%BC+%26+b"])
    step("its message", "GET", "/pages/messages", 200, body: /"notice"=>"this way"/)
    step("back", "GET", "/pages/back", 302, fields: { "Referer" => "http://site.example/x" })
    step("for ever", "GET", "/pages/moved", 301, field: %w[Location https://other.example/])
    step("an old page", "GET", "/old/7?x=1", 301, field: %w[Location http://site.example/books/7])
    step("no password", "GET", "/pages/secret", 401,
         field: ["WWW-Authenticate", 'Basic realm="members"'])
    step("a password", "GET", "/pages/secret", 200, fields: MEMBER)
    step("another site", "GET", "/", 403, fields: { "Host" => "evil.example" })
    assert_connections_kept
  end

  def test_what_the_application_sees
    [
      "/pages/environment", "/pages/environment?a=1&b[]=2&b[]=%C3%BC&c[d]=e&f",
      "/pages/environment/", "/pages/echo/a%20b/%E9%BA%92%2Fc?q=%26", "/pages/echo/100%25",
      "/pages/echo/a.json", "/pages/echo/plus+plus;x=1", "/mounted", "/mounted/x/%41%20b",
      "/mounted/?x", "//books", "/books?"
    ].each { |target| step(target, "GET", target, 200) }
    step("who asks", "GET", "/pages/environment", 200, body: /"xhr":true/,
         fields: { "X-Requested-With" => "XMLHttpRequest", "Accept" => "text/html, */*;q=0.1" })
    %w[POST PUT PATCH DELETE OPTIONS].each do |method|
      step(method, method, "/pages/echo/x?a=0", 200, content: form([%w[a 1], ["b[c]", "ü & b"]]))
    end
    step("a method in a form", "POST", "/pages/json", 200, body: /"method":"PUT"/,
         content: form("_method" => "put", "book[title]" => "Oaks"))
    step("json", "POST", "/pages/json", 200, body: /麒麟/,
         content: Content.json("book" => { "title" => "麒麟", "pages" => 3 }))
    step("no json", "POST", "/pages/json", 400, content: Content::Body.new("application/json", "{"))
    step("a parameter is missing", "POST", "/pages/json", 400, content: Content.json("a" => 1))
    step("a method that there is not", "BREW", "/", 405)
    step("a form that is none", "POST", "/pages/echo/x", 200,
         content: Content::Body.new("multipart/form-data; boundary=x", "none"))
    step("an odd encoding", "GET", "/pages/environment?a=%FF", 400)
    upload = multipart([["note", "zwei Stück"], ["file", ["ä.txt", "text/plain", "a\r\n--b\r\n"]],
                        ["large", ["large.bin", "application/octet-stream", LARGE]]])
    step("files", "POST", "/pages/echo/files", 200, content: upload, body: /3072000/)
    step("files in chunks", "POST", "/pages/echo/files", 200, content: Content.chunked(upload))
    step("a large form", "POST", "/pages/echo/x", 200, content: form("a" => "ü" * 60_000))
    step("a form in chunks", "POST", "/pages/echo/x", 200, body: /1234567/,
         content: Content.chunked(form("a" => "1234567"), size: 2))
  end

  def test_formats_conditions_and_failures
    { "text/html" => /<p>html/, "application/json" => /ü/, "application/xml" => /<name>/,
      "text/plain" => /text/, "image/png" => nil, "*/*" => /html/ }.each do |type, pattern|
      step(type, "GET", "/pages/kinds", pattern ? 200 : 406, body: pattern,
           fields: { "Accept" => type })
    end
    step("by its name", "GET", "/books.json", 200, body: /"title":"Kirin"/)
    step("as a download", "GET", "/books.csv", 200, body: /1,Kirin/)
    step("a tag", "GET", "/pages/conditional", 200, body: /seventh/)
    tag = visitors.first.last.field("ETag")
    step("is matched", "GET", "/pages/conditional", 304, fields: { "If-None-Match" => tag,
         "If-Modified-Since" => "Tue, 14 Nov 2023 22:13:20 GMT" })
    step("is not matched", "GET", "/pages/conditional", 200, fields: { "If-None-Match" => '"x"' })
    page = step("a text with a tag of Rack", "GET", "/pages/teapot", 418)
    assert_nil page.field("ETag")
    page = step("a longer one", "GET", "/pages/plain", 200)
    step("is matched", "GET", "/pages/plain", 304,
         fields: { "If-None-Match" => page.field("ETag") })
    step("its head", "HEAD", "/pages/plain", 200)
    step("a page with a condition", "GET", "/books/1?conditional=1", 200)
    date = visitors.first.last.field("Last-Modified")
    step("no content", "GET", "/pages/empty", 204)
    step("nothing", "GET", "/pages/nothing", 200, body: /\A\z/)
    step("fields", "GET", "/pages/fields", 200, field: %w[X-Number 7])
    page = step("early hints", "GET", "/pages/hints", 200, body: /after the hints/)
    assert_equal [["link", "</assets/shelf.css>; rel=preload; as=style"]],
                 page.hints.map { |name, value| [name.downcase, value] }
    step("dates", "GET", "/pages/dates", 200, body: /January 01, 1970 00:00/)
    step("inline", "GET", "/pages/inline", 200, body: /\A42 /)
    step("nothing there", "GET", "/nothing", 404, body: /The page for 404/)
    step("no book", "GET", "/books/99", 404, body: /The page for 404/)
    step("no book, as json", "GET", "/books/99.json", 404)
    step("an error", "GET", "/pages/broken", 500, body: /The page for 500/)
    step("its head", "HEAD", "/pages/broken", 500)
    servers.each { |server| server.wait_for_log(/RuntimeError \(the shelf has fallen down\)/) }
    step("a count", "GET", "/pages/count?start=1", 200, body: /\A2\z/)
    step("goes on", "GET", "/pages/count", 200, body: /\A4\z/)
    assert_equal "Tue, 14 Nov 2023 22:13:20 GMT", date
    assert_connections_kept
  end

  def test_files
    found = step("a file", "GET", "/books/1/file", 200, body: /\Aone\ntwo\n\z/)
    assert_equal "8", found.field("Content-Length")
    step("its head", "HEAD", "/books/1/file", 200)
    step("a text with a name", "GET", "/books/1/text?name=%C3%A4.txt&disposition=attachment", 200)
    step("a text from memory", "GET", "/pages/attachment", 200, body: /\A(0123456789){1000}\z/)
    part = step("a part of a file", "GET", "/books/1/file", 206, puma: 200,
                fields: { "Range" => "bytes=4-6" })
    assert_equal "two", part.body
    ignored = Differences::OF_THE_FILE_SERVER.keys
    %w[/assets/shelf.css /robots.txt /404.html].each do |name|
      file = step(name, "GET", name, 200, ignored: ignored)
      step("#{name}: its date", "GET", name, 304, ignored: ignored,
           fields: { "If-Modified-Since" => file.field("Last-Modified") })
      step("#{name}: a range", "GET", name, 206, ignored: ignored,
           fields: { "Range" => "bytes=3-9" })
      step("#{name}: its head", "HEAD", name, 200, ignored: ignored)
    end
    step("a name that is not there", "GET", "/assets/none.css", 404, body: /The page for 404/)
    step("out of the directory", "GET", "/assets/../../config.ru", 400, puma: 404)
    servers.first.wait_for_log(%r{"GET /assets/shelf.css HTTP/1.1" 200 .* files })
  end

  def test_streams
    found = step("lines", "GET", "/live/lines", 200, body: /\Aline 0\n.*line 499\n\z/m)
    assert_equal 500, found.body.lines.size
    step("their head", "HEAD", "/live/lines", 200)
    step("events", "GET", "/live/events", 200, field: %w[Content-Type text/event-stream],
         body: /\Aretry: 300\nevent: book\nid: 1\ndata: {"title":"Kirin"}\n\n.*the end/m)
    step("parts", "GET", "/pages/parts", 200, body: /\Apart 0\n.*part 999\n\z/m)
    step("a page that is sent before it is made", "GET", "/pages/streamed", 200,
         body: /<title>Shelf.*(Kirin){100}.*<\/html>/m)
    step("its head", "HEAD", "/pages/streamed", 200, ignored: %w[etag])
    step("an early failure", "GET", "/live/broken?early=1", 500, body: /The page for 500/)
    step("a failure", "GET", "/live/broken", 200, body: /\Abegin\n/)
    step("and on", "GET", "/pages/visits", 200)
    servers.each { |server| server.wait_for_log(/the lines are closed/) }
    assert_connections_kept
  end

  def test_action_cable
    elsewhere = visitors.map do |visitor|
      Cable.new(visitor, "Origin" => "http://evil.example").answer.status
    end
    assert_equal [404, 404], elsewhere
    unknown = visitors.map { |visitor| Cable.new(visitor).receive }
    assert_equal "unauthorized", unknown.first["reason"]
    assert_equal unknown.last, unknown.first
    step("a name", "GET", "/pages/jar", 200)
    heard, expected = visitors.map { |visitor| talk(visitor) }
    assert_equal expected, heard
    assert_equal({ "said" => "bye" }, heard.last["message"])
    servers.each { |server| server.wait_for_log(/a reader has left/) }
    step("the worker serves pages again", "GET", "/pages/visits", 200)
  end

  # Returns the messages that a reader of the first book gets.
  def talk(visitor)
    cable = Cable.new(visitor)
    assert_equal 101, cable.answer.status, cable.answer.to_s
    channel = { channel: "ReadingChannel", book: 1 }
    heard = [cable.receive]
    cable.command("subscribe", channel)
    # These two come from two threads.
    heard.push(*Array.new(2) { cable.receive }.sort_by(&:to_s))
    cable.command("message", channel, action: "say", text: "麒麟" * 100)
    heard << cable.receive
    cable.command("subscribe", { **channel, book: 0 })
    heard << cable.receive
    cable.command("message", channel, action: "fail")
    cable.command("message", channel, action: "say", text: "bye")
    heard << cable.receive
    cable.close
    heard
  end
end

# With cookies for sessions and files for the cache, as `kirin serve .` serves it.
class RailsTest < Comparison
  include ShelfOfBooks

  serve "rails"

  def self.prepare(directory)
    ShelfOfBooks.prepare(directory)
  end
end

# On Kirin's side, sessions and the cache are in the store, Rails names files by X-Sendfile, and the
# workers share the memory of the application. Visitors see no difference.
class RailsInTheStoreTest < Comparison
  include ShelfOfBooks

  # Sessions in the store need a cookie at their start, and those in cookies with each response.
  IGNORED = %w[set-cookie].freeze

  serve "rails"

  def self.prepare(directory)
    ShelfOfBooks.prepare(directory)
  end

  def self.kirin_environment
    { SHELF_STORE: "kirin", SHELF_SENDFILE: "X-Sendfile" }
  end

  def test_a_session_is_an_item_of_the_store
    step("a visit", "GET", "/pages/visits", 200)
    assert_match(/\A\h{40}\z/, visitors.first.cookies["_shelf_session"])
  end

  def self.configuration
    <<~TOML
      [[listener]]
      address = "127.0.0.1:0"
      access_log = "stderr"
      [store]
      memory = "16MB"
      memcached = ["unix:store"]
      [[app]]
      name = "web"
      load = "config.ru"
      workers = 2
      preload = true
      sendfile = ["tmp"]
      [[route]]
      path = "/"
      try = ["store", "files:public", "app:web"]
    TOML
  end
end
