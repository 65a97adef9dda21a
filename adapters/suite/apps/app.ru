# frozen_string_literal: true

# The application of the adapter suite for Ruby. README.md says what each path does.

require "digest"
require "socket"

# What the application does for the tests: files, waits, ends and failures.
module Suite
  DIRECTORY = Dir.pwd
  TABLE = "memo"
  SEVERAL_LINES = "no such table:\nback\\slash"

  # An exception that has no text.
  class Unprintable < StandardError
    def message
      raise "no text"
    end
    alias to_s message
    alias inspect message
    alias detailed_message message
  end

  # A body that is made while it is read. A part may be a function that makes it.
  class Body
    def initialize(*parts, &close)
      @parts = parts
      @close = close
    end

    def each
      @parts.each { |part| yield part.respond_to?(:call) ? part.call : part }
    end

    def close
      @close&.call
    end
  end

  # A body that a function makes, which gets the block that takes the parts.
  class Stream < Body
    def each(&block)
      @parts.first.call(block)
    end
  end

  # A body that has no descriptor, and names its file.
  class NamedFile
    attr_reader :to_path

    def initialize(path)
      @to_path = path
    end

    def each
      yield File.binread(to_path)
    end
  end

  class << self
    # Returns a file of the directory without the line end, or nil if there is none.
    def slurp(name)
      File.read(File.join(DIRECTORY, name)).chomp
    rescue Errno::ENOENT
      nil
    end

    # Writes a file of the directory in one step.
    def spurt(name, text)
      path = File.join(DIRECTORY, name)
      File.write("#{path}.new", text.to_s)
      File.rename("#{path}.new", path)
    end

    # Returns whether a file is there. No process outlives the directory of a failed test.
    def there?(name)
      return true if File.exist?(File.join(DIRECTORY, name))

      exit!(1) unless Dir.exist?(DIRECTORY)
      false
    end

    def wait_for_file(name)
      sleep(0.01) until there?(name)
    end

    # Tells a test that this point is reached, and waits until the test goes on.
    def meet(name)
      spurt("begun.#{name}", Process.pid)
      wait_for_file("go.#{name}")
    end

    # Sleeps for good, whatever signals come. The log must say that it hangs in this file.
    def hang
      loop { sleep(600) }
    end

    def kill_self
      Process.kill(:KILL, Process.pid)
      hang
    end

    def load_badly(how)
      case how
      # Lines of the source are in the log as well, so the message is not in one.
      when "die" then raise "no such table: #{TABLE}"
      when "lines" then raise SEVERAL_LINES
      when "seed" then srand(42)
      when "exit" then exit(3)
      when "hang" then hang
      when "wait" then meet("loading")
      when "print"
        puts "failed by the application", "ready"
        $stdout.flush
      end
    end

    def counted(content)
      "#{content.bytesize} #{Digest::MD5.hexdigest(content)}"
    end

    # Returns this many bytes, all values from 0 to 250 in turn.
    def pattern(length)
      unit = (0..250).to_a.pack("C*")
      (unit * (1 + length / 251)).byteslice(0, length)
    end

    def fail(text)
      raise text
    end

    # Writes to the log.
    def note(text)
      $stderr.puts(text)
      $stderr.flush
    end

    # Answers with a body whose length is known.
    def answer(body, status = 200, fields = {})
      body = body.to_s
      fields = { "Content-Type" => "text/plain", "Content-Length" => body.bytesize.to_s, **fields }
      [status, fields, [body]]
    end

    # Answers with a body, and lets the adapter find its length.
    def reply(body, fields = {}, status = 200)
      [status, { "Content-Type" => "text/plain", **fields }, body]
    end

    # Adds a handler that runs after the response.
    def after(env, &handler)
      env["rack.response_finished"] << proc { handler.call }
    end

    # Adds a handler that a test can hold up.
    def note_after(env)
      name = env["QUERY_STRING"]
      after(env) do
        meet(name)
        note("cleaned up after #{name}")
      end
    end

    # Sends the head of another protocol.
    def switch_protocols(connection, *fields)
      lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", *fields, "", ""]
      connection.write(lines.join("\r\n"))
      connection.flush
    end

    def say_bye(env)
      connection = env["rack.hijack"].call
      switch_protocols(connection, "Upgrade: echo")
      connection.write("bye")
      connection.flush
      connection
    end

    # Echoes bytes up to their end.
    def echo_bytes(connection)
      loop do
        connection.write(connection.readpartial(65_536))
        connection.flush
      end
    rescue EOFError, SystemCallError
      connection.close
    end

    # Echoes the messages of a WebSocket up to the one that closes it.
    def echo_messages(connection)
      first = 0
      until first & 15 == 8
        head = connection.read(2)
        return unless head&.bytesize == 2

        first, size = head.unpack("C2")
        size &= 127
        mask = connection.read(4).unpack("C4")
        data = connection.read(size).to_s.bytes
        data = data.each_with_index.map { |byte, at| byte ^ mask[at % 4] }
        connection.write([first, size, *data].pack("C*"))
        connection.flush
      end
    end

    def small_file
      File.open(File.join(DIRECTORY, "static/small.txt"), "rb")
    end
  end

  VERSION = slurp("version") || "none"
  load_badly(slurp("on-load"))

  MANY = (1..100).to_h { |number| ["X-Field-#{number}", "v" * 300] }
  FORGED = { "Kirin-File" => "1 2 3 4 5 /etc/passwd", "Kirin-Cleanup" => "1" }.freeze

  # Fields of responses, and the body of each.
  FIELDS = {
    "bytes" => ["caf\xE9".b, { "X-Latin" => "caf\xE9".b, "X-UTF-8" => "café" }],
    "repeated" => ["cookies", { "Set-Cookie" => ["a=1", "b=2"] }],
    "lines" => ["cookies", { "Set-Cookie" => "a=1\nb=2" }],
    "empty" => ["empty", { "X-Empty" => "" }],
    "many" => ["many", MANY],
    "hop-by-hop" => ["kept", { "Connection" => "close", "Keep-Alive" => "x" }],
    "forged" => ["forged", FORGED],
    "server" => ["a", { "rack.custom" => "b", "X-A" => "a" }],
    "line-end" => ["a", { "X-A" => "a\r\nX-Evil: b" }],
    "line-feed" => ["a", { "X-A" => "a\nX-Evil: b" }],
    "return" => ["a", { "X-A" => "a\rb" }],
    "nul" => ["a", { "X-A" => "a\0b" }],
    "control" => ["a", { "X-A" => "a\x01b" }],
    "name-line-end" => ["a", { "X-A: 1\r\nX-Evil" => "b" }],
    "name-space" => ["a", { "X Evil" => "b", "X-A" => "a" }],
    "name-colon" => ["a", { "X:Evil" => "b", "X-A" => "a" }],
    "name-empty" => ["a", { "" => "b", "X-A" => "a" }],
    "wide" => ["a", { "X-A" => "\u263a" }],
    "utf-16" => ["a", { "X-A" => "ab".encode("UTF-16LE") }]
  }.freeze

  # Responses that Rack does not allow.
  ODD = {
    "wide-body" => [200, { "Content-Type" => "text/plain" }, ["\u263a"]],
    "undefined" => [200, { "Content-Type" => "text/plain" }, ["a", nil, "b"]],
    "no-response" => nil,
    "text-body" => [200, { "Content-Type" => "text/plain" }, "text"],
    "number-body" => [200, { "Content-Type" => "text/plain" }, 5],
    "no-fields" => [200, nil, ["a"]],
    "never" => []
  }.freeze

  # A file with other fields or another status.
  FILES = {
    "/file" => [200, {}],
    "/file/missing" => [404, {}],
    "/file/exact" => [200, { "Content-Length" => "10" }],
    "/file/shorter" => [200, { "Content-Length" => "4" }],
    "/file/tagged" => [200, { "ETag" => '"mine"' }]
  }.freeze

  ACTIONS = {
    # What a request is.
    "/change-env" => lambda do |env|
      env["HTTP_X_LEFT"] = "behind"
      env.delete("PATH_INFO")
      env.delete("QUERY_STRING")
      answer("changed")
    end,
    "/scheme" => ->(env) { answer(env["rack.url_scheme"]) },
    "/echo" => lambda do |env|
      media_type = env.fetch("CONTENT_TYPE", "application/octet-stream")
      answer(env["rack.input"].read, 200, "Content-Type" => media_type)
    end,
    "/length" => ->(env) { answer(counted(env["rack.input"].read)) },
    "/input/lines" => lambda do |env|
      lines = []
      env["rack.input"].each { |line| lines << line }
      answer("#{lines.length} #{counted(lines.join)}")
    end,
    "/input/part" => ->(env) { answer(env["rack.input"].read(5)) },
    "/input/beyond" => lambda do |env|
      input = env["rack.input"]
      first = input.read(env["CONTENT_LENGTH"].to_i + 100)
      answer("#{first.to_s.bytesize} #{input.read(100).to_s.bytesize}")
    end,
    "/input/twice" => lambda do |env|
      input = env["rack.input"]
      first = input.read
      input.rewind
      answer("#{counted(first)} #{input.read == first ? "again" : "changed"}")
    end,
    "/input/close" => lambda do |env|
      env["rack.input"].close
      answer("closed")
    end,

    # Bodies.
    "/list" => ->(_) { reply(["one", "", "two"]) },
    "/nothing" => ->(_) { reply([]) },
    "/wrong-length" => ->(_) { reply(["short"], "Content-Length" => "1000") },
    "/coded" => lambda do |_|
      reply(Body.new("3\r\none\r\n", "0\r\n\r\n"), "Transfer-Encoding" => "chunked")
    end,
    "/iterate" => ->(_) { reply(Body.new("one", "", "two") { note("the body is closed") }) },
    "/iterate/length" => ->(_) { reply(Body.new("one", "two"), "Content-Length" => "6") },
    "/iterate/long" => ->(_) { reply(Body.new("one", "two"), "Content-Length" => "3") },
    "/iterate/short" => ->(_) { reply(Body.new("one", "two"), "Content-Length" => "9") },
    "/iterate/close-dies" => ->(_) { reply(Body.new("one", "two") { fail("a bad close") }) },
    "/stream" => ->(_) { reply((1..3).lazy.map { |number| "part #{number}\n" }) },
    "/stream/wait" => lambda do |env|
      name = env["QUERY_STRING"]
      reply(Body.new("first\n", lambda do
        wait_for_file("go.#{name}")
        "last\n"
      end))
    end,
    "/stream/large" => ->(_) { reply(Body.new(*([-> { pattern(251_000) }] * 20))) },
    "/stream/endless" => lambda do |env|
      part = "x" * 65_536
      endless = ->(write) { loop { write.call(part) } }
      reply(Stream.new(endless) { spurt("closed.#{env["QUERY_STRING"]}", Process.pid) })
    end,
    "/writer" => lambda do |_|
      reply(lambda do |stream|
        ["one", "", "two"].each { |part| stream.write(part) }
        stream.close
      end)
    end,
    "/writer/endless" => lambda do |_|
      part = "x" * 65_536
      reply(->(stream) { loop { stream.write(part) } })
    end,
    "/writer/hijack" => lambda do |_|
      writer = lambda do |stream|
        ["one", "", "two"].each { |part| stream.write(part) }
        stream.close
      end
      reply([], "rack.hijack" => writer)
    end,

    # Failures.
    "/die/before" => ->(_) { fail("a bad day") },
    "/die/object" => ->(_) { raise Unprintable },
    "/die/first-part" => ->(_) { reply(Body.new(-> { fail("no first part") })) },
    "/die/in" => lambda do |_|
      reply(lambda do |stream|
        stream.write("part")
        stream.flush
        fail("too late")
      end)
    end,
    "/die/in-iterator" => ->(_) { reply(Body.new("part", -> { fail("too late") })) },
    "/die/caught" => lambda do |_|
      fail("caught by the application")
    rescue RuntimeError
      answer("caught")
    end,
    "/die/throw" => ->(_) { throw(:nowhere) },
    "/die/deep" => lambda do |_|
      deeper = -> { deeper.call + 1 }
      deeper.call
    end,
    "/die/script" => ->(_) { raise NotImplementedError, "not written yet" },
    "/exit" => ->(_) { exit(3) },
    "/kill" => ->(_) { kill_self },
    "/kill/once" => lambda do |env|
      path = File.join(DIRECTORY, "killed.#{env["QUERY_STRING"]}")
      File.open(path, File::CREAT | File::EXCL | File::WRONLY) { nil }
      kill_self
    rescue Errno::EEXIST
      answer("survived")
    end,
    "/kill/in" => ->(_) { reply(Body.new("part", -> { kill_self })) },

    # Requests that wait or take too long.
    "/wait" => lambda do |env|
      meet(env["QUERY_STRING"])
      answer(Process.pid)
    end,
    "/hang" => lambda do |env|
      spurt("begun.#{env["QUERY_STRING"]}", Process.pid)
      hang
    end,
    "/hang/loop" => ->(_) { loop { nil } },

    # The worker.
    "/version" => ->(_) { answer(VERSION) },
    "/pid" => ->(_) { answer(Process.pid) },
    "/parent" => ->(_) { answer(Process.ppid) },
    "/random" => ->(_) { answer(rand) },
    "/leave" => lambda do |env|
      env["kirin.leave"].call
      answer(Process.pid)
    end,
    "/log" => lambda do |env|
      env["rack.errors"].puts("a line for the log: #{env["QUERY_STRING"]}")
      env["rack.errors"].flush
      answer("logged")
    end,
    "/print" => lambda do |env|
      puts "a line on standard output: #{env["QUERY_STRING"]}"
      $stdout.flush
      answer("printed")
    end,
    "/close-streams" => lambda do |_|
      # Ruby keeps the descriptors 0 to 2 when their streams are closed.
      [$stdin, $stdout, $stderr].each(&:close)
      answer("closed")
    end,
    "/ignore-signals" => lambda do |_|
      %w[TERM QUIT USR2 PIPE].each { |signal| trap(signal, "IGNORE") }
      answer(Process.pid)
    end,
    "/program" => ->(_) { answer(`echo hello`) },
    "/fork/child-dies" => lambda do |_|
      child = fork
      fail("a bad child") unless child
      Process.wait(child)
      answer("parent")
    end,
    "/fork/child-answers" => lambda do |_|
      child = fork
      next answer("child") unless child

      Process.wait(child)
      answer("parent")
    end,
    "/fork/background" => lambda do |env|
      name = env["QUERY_STRING"]
      unless fork
        meet(name)
        spurt("done.#{name}", "")
        exit!(0)
      end
      answer(Process.pid)
    end,

    # After the response.
    "/cleanup" => lambda do |env|
      note_after(env)
      answer(Process.pid)
    end,
    "/cleanup/stream" => lambda do |env|
      note_after(env)
      reply(Body.new(Process.pid.to_s))
    end,
    "/cleanup/late" => lambda do |env|
      reply(Body.new(-> { Process.pid.to_s }, lambda do
        note_after(env)
        ""
      end))
    end,
    "/cleanup/puma" => lambda do |env|
      env["rack.after_reply"] << -> { note("cleaned up as Puma does") }
      answer("answered")
    end,
    "/cleanup/arguments" => lambda do |env|
      env["rack.response_finished"] << lambda do |of_env, status, fields, error|
        same = of_env.equal?(env) && fields["X-A"] == "a"
        note("finished with #{status} #{error.inspect} #{same}")
      end
      answer("answered", 201, "X-A" => "a")
    end,
    "/cleanup/die" => lambda do |env|
      # Rack runs them in the reverse order.
      after(env) { note("the next handler runs") }
      after(env) { fail("a bad handler") }
      answer("answered")
    end,
    "/cleanup/leave" => lambda do |env|
      env["kirin.leave"].call
      note_after(env)
      answer(Process.pid)
    end,
    "/cleanup/after-die" => lambda do |env|
      after(env) { note("cleaned up after a failure") }
      fail("a bad day")
    end,
    "/cleanup/hang" => lambda do |env|
      after(env) { hang }
      answer(Process.pid)
    end,
    "/cleanup/kill" => lambda do |env|
      after(env) { kill_self }
      answer(Process.pid)
    end,

    # Informational responses.
    "/hints" => lambda do |env|
      hints = env["rack.early_hints"]
      hints.call("Link" => "</style.css>; rel=preload", "Connection" => "close")
      wait_for_file("go.#{env["QUERY_STRING"]}")
      hints.call("Link" => "</more.css>; rel=preload")
      answer("hinted")
    end,
    "/hints/die" => lambda do |env|
      env["rack.early_hints"].call("Link" => "</style.css>; rel=preload")
      fail("a bad day after a hint")
    end,
    "/hints/line-end" => lambda do |env|
      env["rack.early_hints"].call("Link" => "</a>\r\nX-Evil: b")
      answer("sent")
    rescue StandardError
      answer("refused")
    end,
    "/hints/late" => lambda do |env|
      reply(Body.new("part", lambda do
        env["rack.early_hints"].call("Link" => "</style.css>; rel=preload")
        "sent"
      end))
    end,

    # Upgrades.
    "/socket" => ->(env) { answer(env.key?("rack.hijack") ? "socket" : "none") },
    "/upgrade" => lambda do |env|
      next reply(["upgrade"], { "Upgrade" => "echo" }, 426) unless env.key?("rack.hijack")

      connection = env["rack.hijack"].call
      switch_protocols(connection, "Upgrade: echo", "X-Worker: #{Process.pid}")
      echo_bytes(connection)
      [-1, {}, []]
    end,
    "/upgrade/websocket" => lambda do |env|
      key = "#{env["HTTP_SEC_WEBSOCKET_KEY"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
      accept = Digest::SHA1.base64digest(key)
      connection = env["rack.hijack"].call
      switch_protocols(connection, "Upgrade: websocket", "Sec-WebSocket-Accept: #{accept}")
      echo_messages(connection)
      connection.close
      [-1, {}, []]
    end,
    "/upgrade/thread" => lambda do |env|
      connection = env["rack.hijack"].call
      switch_protocols(connection, "Upgrade: echo")
      Thread.new { echo_bytes(connection) }
      [-1, {}, []]
    end,
    "/upgrade/die" => lambda do |env|
      say_bye(env)
      fail("a bad day after the switch")
    end,
    "/upgrade/response" => lambda do |env|
      say_bye(env)
      answer("late")
    end,
    "/upgrade/keep" => lambda do |env|
      KEPT << say_bye(env)
      [-1, {}, []]
    end,
    "/upgrade/decline" => ->(_) { fail("declined") },
    "/upgrade/unasked" => ->(_) { [101, { "Upgrade" => "echo" }, []] },
    "/upgrade/writer" => lambda do |_|
      writer = lambda do |stream|
        stream.write("hello ")
        stream.write("and bye")
        stream.close
      end
      [101, { "Upgrade" => "echo" }, writer]
    end,
    "/upgrade/partial" => lambda do |_|
      [101, { "Upgrade" => "echo", "rack.hijack" => method(:echo_bytes) }, []]
    end,
    "/upgrade/kill" => lambda do |env|
      say_bye(env)
      kill_self
    end,

    # Files.
    "/file/large" => ->(_) { reply(File.open(File.join(DIRECTORY, "static/large.bin"), "rb")) },
    "/file/named" => ->(_) { reply(NamedFile.new(File.join(DIRECTORY, "static/small.txt"))) },
    "/file/read" => lambda do |_|
      file = small_file
      file.read(4)
      reply(file)
    end,
    "/file/gone" => lambda do |_|
      spurt("static/temporary", "temporary")
      path = File.join(DIRECTORY, "static/temporary")
      file = File.open(path, "rb")
      File.unlink(path)
      reply(file)
    end,
    "/file/unnamed" => lambda do |_|
      reply(IO.for_fd(IO.sysopen(File.join(DIRECTORY, "static/small.txt")), "rb"))
    end,
    "/file/cleanup" => lambda do |env|
      after(env) { note("cleaned up after a file") }
      reply(small_file)
    end,
    "/file/leave" => lambda do |env|
      env["kirin.leave"].call
      reply(small_file)
    end,
    "/sendfile" => lambda do |env|
      reply([], "X-Sendfile" => File.join(DIRECTORY, env["QUERY_STRING"]))
    end
  }.freeze

  # Sockets that the application does not give back.
  KEPT = []

  @requests = 0

  # Paths with a value in them.
  def self.with_value(path, env)
    case path
    when %r{\A/env}
      names = env.keys.select { |name| name.match?(/\A[A-Z]/) && env[name].is_a?(String) }
      answer(names.sort.map { |name| "#{name}=#{env[name]}\n".b }.join)
    when %r{\A/bytes/} then answer(pattern(path.delete_prefix("/bytes/").to_i))
    when %r{\A/fields/}
      body, fields = FIELDS.fetch(path.delete_prefix("/fields/"))
      reply([body], fields)
    when %r{\A/odd/} then ODD.fetch(path.delete_prefix("/odd/"))
    when %r{\A/status/}
      code = path.delete_prefix("/status/")
      reply(["status #{code}"], {}, code.match?(/\A\d+\z/) ? code.to_i : code)
    end
  end

  def self.call(env)
    # The path of Rack is percent-encoded.
    path = Rack::Utils.unescape_path(env["PATH_INFO"])
    return answer("#{Process.pid} #{@requests}") if path == "/state"

    @requests += 1
    if (found = FILES[path])
      status, fields = found
      return reply(small_file, fields, status)
    end
    action = ACTIONS[path]
    return instance_exec(env, &action) if action

    known = %r{\A/(env|bytes/|fields/|odd/|status/)}.match?(path)
    known ? with_value(path, env) : answer("no such action", 404)
  end
end

run Suite
