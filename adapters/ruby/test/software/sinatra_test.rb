# frozen_string_literal: true

require_relative "comparison"

# An application of Sinatra, compared with Puma.
class SinatraTest < Comparison
  LARGE = (0..255).to_a.pack("C*") * 12_000
  BASIC = { "Authorization" => "Basic #{['ann:oak'].pack('m0')}" }.freeze

  serve "sinatra"

  def self.environment(directory)
    path = File.join(directory, "large.bin")
    File.binwrite(path, LARGE)
    File.utime(0, 1_700_000_000, path)
    { NOTES_LARGE_FILE: path }
  end

  def test_a_session_and_its_notes
    step("the first page begins a session", "GET", "/", 200, body: /visit 1</)
    step("which goes on", "GET", "/", 200, body: /visit 2</)
    step("a note", "POST", "/note", 303, content: form("text" => "麒麟 & <b>"),
         field: ["Location", "http://site.example/"])
    step("is there", "GET", "/", 200, body: %r{<li>麒麟 &amp; &lt;b&gt;</li>})
    step("no text", "POST", "/note", 422, content: form("text" => " "), body: /no text/)
    step("no field", "POST", "/note", 422, content: form({}))
    step("a form from elsewhere has no session", "POST", "/note", 303, content: form("text" => "x"),
         fields: { "Origin" => "https://evil.example" })
    step("the end", "GET", "/logout", 302, fields: { "Referer" => "http://site.example/x" },
         field: ["Location", "http://site.example/x"])
    step("another session", "GET", "/", 200, body: /visit 1</)
    step("cookies", "GET", "/cookies", 200, body: /before: \[\]/)
    step("come back", "GET", "/cookies", 200, body: /"ä; b=c"/)
    assert_connections_kept
  end

  def test_the_environment_and_the_parameters
    ["/env", "/env/", "/env?a=1&a=2&b[]=x&b[]=y&c[d]=e", "/env/a%20b/%E9%BA%92?%C3%BC=%20+",
     "/env/a%2Fb%25/plus+plus", "/env/;p=1?", "/env/%41?&&=&x",
     "/mounted/env/a%20b?q", "/env/~a!$&'()*,:@-._"
    ].each { |target| step(target, "GET", target, 200) }
    # REQUEST_URI is without scheme and host, and resolved.
    step("a complete URL", "GET", "http://site.example/env/x?y", 200, puma: 200,
         body: %r{/env/x\?y})
    step("a path that Kirin resolves", "GET", "/env/a//b/./c", 200, puma: 200,
         body: %r{/env/a/b/c})
    step("a page of members", "GET", "/members/env/x", 401)
    step("with a password", "GET", "/members/env/x?y", 200, fields: BASIC)
    step("another host", "GET", "/env", 200, fields: { "Host" => "other.example:8443" })
    step("many fields", "GET", "/env", 200, body: /HTTP_X_ODD_NAME/,
         fields: { "X-Odd-Name" => "a, b", "Accept" => "*/*", "Accept-Language" => "de,en;q=0.5",
                   "X-Empty" => "" })
    step("named", "GET", "/named/a%20b/c%3Fd?first=no&e=f", 200, body: /a b.*c\?d/)
    step("a slash in a part", "GET", "/named/a/c%2Fd", 404)
    step("a part that may miss", "GET", "/named/x", 200)
    step("a pattern", "GET", "/year/1999", 200, body: /the year 1999/)
    step("no pattern", "GET", "/year/99", 404, body: %r{not found: /year/99})
    step("passed on", "GET", "/pass/on", 200, body: /passed/)
    step("not passed on", "GET", "/pass/off", 200, body: /stays/)
    step("the media type", "GET", "/vary", 200, body: /json/,
         fields: { "Accept" => "text/html;q=0.5, application/json" })
  end

  def test_bodies_of_requests
    %w[POST PUT PATCH DELETE OPTIONS LINK].each do |method|
      step(method, method, "/env/x?q=1", 200, content: form([%w[a 1], ["a", "ü & b"]]))
    end
    step("no body", "POST", "/env", 200, fields: { "Content-Length" => "0" })
    step("a large form", "POST", "/env/x", 200, content: form("a" => "ü" * 60_000))
    step("json", "POST", "/json", 200, content: Content.json("a" => [1, "麒麟"]), body: /麒麟/)
    step("no json", "POST", "/json", 500, content: form("a" => "1"), body: /ParserError/)
    upload = multipart("note" => "zwei Stück",
                       "file" => ["麒麟.txt", "text/plain", "a\r\n--b\r\n"],
                       "large" => ["large.bin", "application/octet-stream", LARGE])
    step("files", "POST", "/upload", 200, content: upload, body: /3072000/)
    step("files in chunks", "POST", "/upload", 200, content: Content.chunked(upload))
    step("a few bytes in chunks", "POST", "/upload", 200, body: /a=1234567/,
         content: Content.chunked(form("a" => "1234567"), size: 2))
    body = Content::Body.new("application/octet-stream", LARGE)
    step("bytes", "POST", "/raw", 200, content: body, body: /\A391680000 ""/)
    step("bytes in chunks", "POST", "/raw", 200, content: Content.chunked(body))
    step("a broken form", "POST", "/upload", 400,
         content: Content::Body.new(upload.media_type, "no part"))
    step("a broken parameter", "GET", "/named/x?a=%", 400)
    step("a parameter that contradicts another", "GET", "/named/x?a=1&a[b]=2", 400)
    assert_connections_kept
  end

  def test_files
    check_file("/file", [])
    check_file("/picture.svg", Differences::OF_THE_FILE_SERVER.keys)
    step("a name for the disk", "GET", "/file/attachment", 200)
    step("a status", "GET", "/file/status", 203)
    step("no file", "GET", "/file/none", 404)
    step("an open file", "GET", "/file/opened", 200, body: /<svg/)
    found = step("a large one", "GET", "/file/large", 200)
    assert_equal LARGE, found.body
    step("its end", "GET", "/file/large", 206, fields: { "Range" => "bytes=-1000" })
    step("its head", "HEAD", "/file/large", 200, field: %w[Content-Length 3072000])
    assert_connections_kept
  end

  def check_file(name, ignored)
    found = step(name, "GET", name, 200, body: /<svg/, ignored: ignored)
    date = found.field("Last-Modified")
    {
      "its date" => [{ "If-Modified-Since" => date }, 304],
      "an older date" => [{ "If-Modified-Since" => "Sat, 01 Jan 2000 00:00:00 GMT" }, 200],
      "a range" => [{ "Range" => "bytes=5-14" }, 206],
      "from the middle" => [{ "Range" => "bytes=50-" }, 206],
      "the end" => [{ "Range" => "bytes=-7" }, 206],
      "no range" => [{ "Range" => "lines=1-2" }, 200]
    }.each do |what, (fields, status)|
      step("#{name}: #{what}", "GET", name, status, fields: fields, ignored: ignored)
    end
    step("#{name}: a range that is not there", "GET", name, 416,
         fields: { "Range" => "bytes=9999-" }, puma: 416)
    step("#{name}: its head", "HEAD", name, 200, ignored: ignored)
  end

  def test_streams
    found = step("a stream", "GET", "/stream?word=oak", 200, body: /\Aoak 0\n.*oak 199\n\z/m)
    assert_equal 10_000, found.body.lines.size
    step("its head", "HEAD", "/stream?word=oak", 200)
    step("an empty one", "GET", "/stream/empty", 200)
    step("lines", "GET", "/stream/lines", 200, body: /line 999\n\z/)
    step("lines with a length", "GET", "/stream/length", 200, field: %w[Content-Length 8890])
    step("events", "GET", "/stream/events", 200, body: /\Adata: 0\n\ndata: 1\n\ndata: 2\n\n\z/)
    step("a hijacked response", "GET", "/stream/hijacked", 200, body: /\Awritten by hand\z/)
    servers.each { |server| server.wait_for_log(/the lines are closed/) }
    servers.each { |server| server.wait_for_log(/the events are closed/) }
  end

  def test_statuses_conditions_and_failures
    [200, 201, 202, 301, 400, 401, 404, 410, 418, 451, 500, 503, 599].each do |code|
      step("status #{code}", "GET", "/status/#{code}", code)
    end
    step("204", "GET", "/nobody", 204)
    step("three parts", "GET", "/triple", 201, field: %w[X-Triple yes])
    step("fields", "GET", "/fields", 200)
    step("a tag", "GET", "/conditional", 200, field: %w[ETag "seven"])
    step("is matched", "GET", "/conditional", 304, fields: { "If-None-Match" => '"seven"' })
    step("is not matched", "GET", "/conditional", 412, fields: { "If-Match" => '"eight"' })
    step("a time", "GET", "/expires", 200)
    step("compressed", "GET", "/", 200, fields: { "Accept-Encoding" => "gzip" }, puma: 200)
    step("a long text", "GET", "/long", 200)
    step("its head", "HEAD", "/long", 200, field: %w[Content-Length 1600000])
    step("nothing there", "GET", "/nothing", 404, body: %r{not found: /nothing})
    step("no such method", "DELETE", "/note", 404)
    step("OPTIONS", "OPTIONS", "/note", 404)
    step("an error", "GET", "/broken", 500, body: /error page: RuntimeError/)
    servers.each { |server| server.wait_for_log(/RuntimeError - no such luck/) }
    step("after the reply", "GET", "/after", 200, body: /before/)
    servers.each { |server| server.wait_for_log(/^after the reply/) }
    assert_connections_kept
  end

  def test_a_stream_that_fails_is_cut
    visitors.zip(servers) do |visitor, server|
      assert_raises(Visitor::Cut) { visitor.request("GET", "/broken/stream") }
      server.wait_for_log(/cut in the middle/)
    end
  end
end
