# frozen_string_literal: true

require "timeout"
require_relative "programs"

# A server on a unix socket that answers each connection by a block, in a thread of its own.
class Peer
  attr_reader :path, :received

  def initialize(answer)
    @directory = Dir.mktmpdir("kirin-peer-")
    @path = File.join(@directory, "peer")
    @listener = UNIXServer.new(@path)
    @received = Queue.new
    @connections = []
    @thread = Thread.new { serve(answer) }
  end

  def address
    "unix:#{@path}"
  end

  def close
    @thread.kill
    @thread.join
    @listener.close
    @connections.each(&:close)
    FileUtils.rm_rf(@directory)
  end

  private

  def serve(answer)
    loop do
      connection = @listener.accept
      @connections << connection
      @received << connection.readpartial(65_536)
      answer.call(connection)
    rescue SystemCallError, IOError
      next
    end
  end
end

# Stores that are away, slow or no stores, and processes and threads that share a client.
class ConnectionsTest < ProgramTest
  CALLS = {
    get: ["a"], gets: ["a"], get_multi: %w[a b], set: ["a", 1], add: ["a", 1], replace: ["a", 1],
    append: %w[a x], set_multi: [{ "a" => 1 }], set_cas: ["a", 1, 1], delete: ["a"], incr: ["a"],
    decr: ["a"], touch: ["a"], set_page: ["/", "text/plain", "x"],
    set_response: ["/", [200, {}, ["x"]]]
  }.freeze

  def with_peer(answer)
    peer = Peer.new(answer)
    yield peer
  ensure
    peer&.close
  end

  def reply(*replies)
    lambda do |connection|
      connection.write(replies.shift || "")
      connection.close
    end
  end

  # An answer that leaves a client without a reply.
  def hold
    ->(_connection) {}
  end

  def reason(store)
    assert_raises(Kirin::Store::Error) { store.get("a") }.message
  end

  def test_each_method_raises_when_the_store_is_away_and_connects_again
    Memcached.run do |memcached|
      store = Kirin::Store.new(memcached.address)
      store.set("a", 1)
      memcached.stop
      CALLS.each do |method, arguments|
        error = assert_raises(Kirin::Store::Error, method) { store.public_send(method, *arguments) }
        assert error.message.start_with?("#{memcached.address}: "), error.message
        refute_kind_of Kirin::Store::InvalidArgument, error
      end
      assert_raises(Kirin::Store::Error) { store.purge(tags: "t") }
      assert_raises(Kirin::Store::Error) { store.cas("a") { flunk } }
      assert_equal(7, store.fetch("a") { 7 })
      memcached.start
      assert store.set("a", 2)
      assert_equal 2, store.get("a")
    end
  end

  def test_a_restart_between_two_commands_is_not_noticed
    Memcached.run do |memcached|
      store = Kirin::Store.new(memcached.address)
      store.set("a", 1)
      memcached.stop
      memcached.start
      assert store.set("a", 2)
    end
  end

  def test_addresses_that_cannot_be
    { "localhost" => /is not HOST:PORT/, "" => /is not HOST:PORT/,
      "unix:#{'/x' * 60}" => /too long/, "127.0.0.1:99999" => /./, "unix:/nowhere/store" => /: No such file or directory\z/,
      "x\0:1" => /./ }.each do |address, pattern|
      assert_match pattern, reason(Kirin::Store.new(address))
    end
  end

  def test_a_path_may_be_relative_to_the_working_directory
    Memcached.run do |memcached|
      Dir.chdir(memcached.directory) { assert Kirin::Store.new("unix:store").set("a", 1) }
      assert_equal 1, Kirin::Store.new(memcached.path("store")).get("a")
    end
  end

  def test_tcp_and_a_refused_port
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.addr[1]
    thread = Thread.new do
      connection = listener.accept
      connection.readpartial(100)
      connection.write("VALUE a 0 1\r\nx\r\nEND\r\n")
      connection.close
    end
    assert_equal "x", Kirin::Store.new("localhost:#{port}").get("a")
    thread.join
    listener.close
    assert_match(/: Connection refused\z/, reason(Kirin::Store.new("127.0.0.1:#{port}")))
  end

  def test_a_peer_that_is_no_memcached_is_a_failure_with_a_reason
    { "VALUE a 0 5\r\nab" => /closed/, "HTTP/1.1 400 Bad Request\r\n" => %r{HTTP/1.1 400},
      "x" * 20_000 => /no reply of a memcached/,
      "VALUE a 0 1\r\nabcdef\r\nEND\r\n" => /no reply of a memcached/,
      "VALUE a 0 -1\r\nEND\r\n" => /VALUE a 0 -1/, "\xFF\0\r\n".b => /no reply of a memcached/,
      "" => /closed/, "SERVER_ERROR out of memory\r\n" => /out of memory/,
      "VALUE a 8 1\r\n{\r\nEND\r\n" => /cannot be read/,
      "VALUE a 4 1\r\n\xFF\r\nEND\r\n".b => /cannot be read/,
      "VALUE a 8 60000\r\n#{'[' * 60_000}\r\nEND\r\n" => /cannot be read/ }.each do |sent, pattern|
      with_peer(reply(sent)) do |peer|
        assert_match pattern, reason(Kirin::Store.new(peer.address)), sent[0, 40]
      end
    end
  end

  def test_a_reply_may_come_in_any_parts
    answer = lambda do |connection|
      "VALUE a 4 5\r\na\r\nbc\r\nEND\r\n".each_char do |char|
        connection.write(char)
        Thread.pass
      end
    end
    with_peer(answer) { |peer| assert_equal "a\r\nbc", Kirin::Store.new(peer.address).get("a") }
  end

  def test_unexpected_bytes_are_not_the_reply_to_the_next_command
    replies = ["VALUE a 0 1\r\nx\r\nEND\r\nVALUE a 0 5\r\nwrong\r\nEND\r\n",
               "VALUE a 0 5\r\nright\r\nEND\r\n"]
    with_peer(->(connection) { connection.write(replies.shift) }) do |peer|
      store = Kirin::Store.new(peer.address)
      assert_equal "x", store.get("a")
      assert_equal "right", store.get("a")
    end
  end

  def test_a_name_that_was_not_asked_for_is_no_reply
    with_peer(reply("VALUE b 0 1\r\nx\r\nEND\r\n")) do |peer|
      store = Kirin::Store.new(peer.address)
      assert_raises(Kirin::Store::Error) { store.get_multi("a") }
    end
  end

  def test_a_store_that_does_not_answer_costs_the_time_limit_once
    with_peer(hold) do |peer|
      store = Kirin::Store.new(peer.address, timeout: 0.1)
      error = assert_raises(Kirin::Store::NoAnswer) { store.incr("a") }
      assert_equal "#{peer.address}: no answer within 0.1 s", error.message
      assert_match(/no new try for a moment/, reason(store))
      assert_equal 1, peer.received.size, "the command was sent once"
      wait_until("it tries again") { !reason(store).include?("no new try") }
      assert_equal 2, peer.received.size
    end
  end

  def test_a_stopped_store_is_no_hang
    Memcached.run do |memcached|
      store = Kirin::Store.new(memcached.address, timeout: 0.1)
      store.set("a", 1)
      memcached.pause
      assert_raises(Kirin::Store::NoAnswer) { store.set("a", "x" * 900_000) }
      memcached.go_on
      wait_until("it is used again") do
        store.get("a")
      rescue Kirin::Store::Error
        nil
      end
    end
  end

  def test_a_full_queue_of_connections_is_no_hang
    Dir.mktmpdir do |directory|
      listener = Socket.new(:UNIX, :STREAM)
      listener.bind(Addrinfo.unix(File.join(directory, "s")))
      listener.listen(0)
      waiting = []
      begin
        loop do
          waiting << Socket.new(:UNIX, :STREAM)
          waiting.last.connect_nonblock(listener.local_address)
        end
      rescue Errno::EAGAIN
        # The queue is full.
      end
      store = Kirin::Store.new("unix:#{directory}/s", timeout: 0.1)
      assert_raises(Kirin::Store::NoAnswer) { store.get("a") }
    ensure
      waiting&.each(&:close)
      listener&.close
    end
  end

  def test_a_store_that_closes_kills_no_process_that_has_changed_sigpipe
    with_peer(->(connection) { connection.close }) do |peer|
      program = <<~RUBY
        trap("PIPE", "SYSTEM_DEFAULT")
        begin
          Kirin::Store.new(#{peer.address.inspect}).set("a", "x" * 30_000_000)
        rescue Kirin::Store::Error => e
          print e.message
        end
      RUBY
      output, status = Open3.capture2e(RbConfig.ruby, "-I#{LIBRARY}", "-rkirin/store", "-e",
                                       program)
      assert status.success?, status.inspect
      assert_match(/write|closed|read/, output)
    end
  end

  def test_an_interrupted_command_does_not_leave_its_reply_to_the_next
    Memcached.run do |memcached|
      store = Kirin::Store.new(memcached.address, timeout: SECONDS)
      store.set("a", "wrong")
      store.set("b", "right")
      memcached.pause
      assert_raises(Timeout::Error) { Timeout.timeout(0.1) { store.get("a") } }
      memcached.go_on
      assert_equal "right", store.get("b")
    end
  end

  def test_threads_have_connections_of_their_own
    Memcached.run do |memcached|
      store = Kirin::Store.new(memcached.address)
      threads = Array.new(8) do |i|
        Thread.new do
          100.times.all? do |j|
            store.set("k#{i}", [i, j])
            store.get("k#{i}") == [i, j]
          end
        end
      end
      assert threads.map(&:value).all?
    end
  end

  def test_a_forked_process_connects_for_itself
    Memcached.run do |memcached|
      store = Kirin::Store.new(memcached.address)
      store.set("a", "parent")
      sockets = open_sockets
      reader, writer = IO.pipe
      pid = fork do
        store.get("a")
        writer.write(Marshal.dump(open_sockets - sockets))
        exit!(0)
      end
      writer.close
      new_sockets = Marshal.load(reader.read)
      Process.wait(pid)
      assert_equal 1, new_sockets.size, "the child has a connection of its own"
      assert_equal sockets, open_sockets
      assert_equal "parent", store.get("a")
    end
  end

  # The inodes of the sockets of this process.
  def open_sockets
    Dir["/proc/self/fd/*"].filter_map do |file|
      File.readlink(file)[/\Asocket:\[(\d+)\]/, 1]
    rescue Errno::ENOENT
      nil
    end.sort
  end

  def test_clients_of_one_address_share_connections_and_close_gives_them_back
    Memcached.run do |memcached|
      before = open_sockets
      10.times { |i| Kirin::Store.new(memcached.address).set("a", i) }
      assert_equal 1, (open_sockets - before).size
      Kirin::Store.new(memcached.address).close
      assert_equal before, open_sockets
    end
  end

  def test_a_handler_of_a_signal_can_use_the_store
    Memcached.run do |memcached|
      store = Kirin::Store.new(memcached.address)
      before = trap("USR1") { store.incr("n", 1, initial: 1) }
      Process.kill(:USR1, Process.pid)
      assert_equal 1, wait_until("the handler has run") { store.get("n") }
    ensure
      trap("USR1", before || "DEFAULT")
    end
  end
end
