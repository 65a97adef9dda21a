# frozen_string_literal: true

require "minitest/autorun"
require_relative "served_program"

# Other protocols on the connection of a request.
class HijackTest < Minitest::Test
  include ServedProgram

  UPGRADE = { "HTTP_UPGRADE" => "echo" }.freeze
  HEAD = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n"

  PROGRAM = <<~'RUBY'
    HEAD = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n"
    ASYNC = [-1, {}, []].freeze

    def echo(io)
      loop { io.write(io.readpartial(1000)) }
    rescue EOFError
      io.close
    end

    def hijacked(env)
      io = env["rack.hijack"].call
      io.write(HEAD)
      io
    end

    ACTIONS = {
      "none" => ->(env) { [200, {}, [[env["rack.hijack?"], env.key?("rack.hijack")].inspect]] },
      "echo" => ->(env) { echo(hijacked(env)); ASYNC },
      "io" => lambda { |env|
        io = hijacked(env)
        io.write([io.equal?(env["rack.hijack_io"]), io.close_on_exec?, io.fileno > 2].inspect)
        io.close
        ASYNC
      },
      "thread" => ->(env) { io = hijacked(env); Thread.new { echo(io) }; ASYNC },
      "keep" => ->(env) { ($kept ||= []) << hijacked(env).tap { |io| io.write("bye") }; ASYNC },
      "response" => ->(env) { hijacked(env).write("bye"); [200, {}, ["late"]] },
      "raise" => ->(env) { hijacked(env).write("bye"); raise "a bad day" },
      "decline" => ->(_) { raise "declined" },
      "late" => ->(env) { $late = env["rack.hijack"]; [200, {}, ["late"]] },
      "use-late" => ->(_) { [200, {}, [begin; $late.call; rescue IOError => e; e.message; end]] },
      "array" => ->(_) { [101, { "Upgrade" => "echo" }, []] },
      "parts" => ->(_) { [101, { "Upgrade" => "echo" }, (1..2).lazy.map { |one| "part #{one}" }] },
      "stream" => ->(_) { [101, { "Upgrade" => "echo" }, ->(io) { echo(io) }] },
      "partial" => lambda { |_|
        [101, { "Upgrade" => "echo", "rack.hijack" => ->(io) { echo(io) } }, []]
      },
      "partial-thread" => lambda { |_|
        [101, { "Upgrade" => "echo", "rack.hijack" => ->(io) { Thread.new { echo(io) } } }, []]
      }
    }
    run ->(env) { ACTIONS.fetch(env["PATH_INFO"].delete_prefix("/")).call(env) }
  RUBY

  def begin_upgrade(front, name)
    front.send_request(UPGRADE.merge("PATH_INFO" => "/#{name}", "REQUEST_URI" => "/#{name}"))
    assert_equal HEAD.delete_suffix("\r\n\r\n"), front.read_until("\r\n\r\n")
  end

  # Sends bytes, reads them again, and ends the connection as a client does.
  def use(front)
    %w[hello there].each do |text|
      front.connection.write(text)
      assert_equal text, front.read_bytes(text.size)
    end
    front.connection.close_write
    assert_equal "", front.rest
    front.disconnect
  end

  def test_only_a_request_for_an_upgrade_can_be_taken
    with_front do |front|
      assert_equal "[false, false]", front.get("/none").body
      assert_equal "[true, true]", front.get("/none", UPGRADE).body
      assert_equal "[false, false]", front.get("/none", "HTTP_UPGRADE" => "echo",
                                                        "SERVER_PROTOCOL" => "HTTP/1.0").body
      response = front.request(UPGRADE.merge("PATH_INFO" => "/none"), body: "hello")
      assert_equal "[false, false]", response.body
    end
  end

  def test_the_application_speaks_its_own_protocol_and_the_worker_serves_on
    with_front do |front|
      %w[echo thread].each do |name|
        begin_upgrade(front, name)
        use(front)
        assert_equal "[false, false]", front.get("/none").body
      end
      begin_upgrade(front, "io")
      assert_equal "[true, true, true]", front.rest
      assert FakeFront.alive?(@pid)
      refute_match(/kirin: worker/, front.log)
    end
  end

  def test_101_with_a_body_switches_too
    with_front do |front|
      %w[stream partial partial-thread].each do |name|
        front.send_request(UPGRADE.merge("PATH_INFO" => "/#{name}"))
        assert_equal "HTTP/1.1 101\r\nUpgrade: echo", front.read_until("\r\n\r\n"), front.log
        use(front)
      end
      front.send_request(UPGRADE.merge("PATH_INFO" => "/parts"))
      front.read_until("\r\n\r\n")
      assert_equal "part 1part 2", front.rest
    end
  end

  def test_a_complete_101_and_one_without_a_request_for_it_are_500
    with_front do |front|
      assert_equal 500, front.get("/array", UPGRADE).status
      %w[array parts stream partial].each do |name|
        assert_equal 500, front.get("/#{name}").status, name
      end
    end
  end

  def test_the_connection_ends_with_the_application_although_that_keeps_the_socket
    with_front do |front|
      %w[keep response raise].each do |name|
        begin_upgrade(front, name)
        assert_equal "bye", front.rest, name
        front.disconnect
      end
      log = front.wait_for_log(%r{GET /raise: a bad day})
      refute_match(%r{GET /response}, log)
      assert_equal "[false, false]", front.get("/none").body
    end
  end

  def test_an_error_before_the_connection_is_taken_is_500
    with_front do |front|
      assert_equal 500, front.get("/decline", UPGRADE).status
      front.wait_for_log(%r{GET /decline: declined})
      assert_equal "late", front.get("/late", UPGRADE).body
      assert_equal "the request has ended", front.get("/use-late").body
    end
  end

  def test_term_ends_the_wait_for_a_thread
    with_front do |front|
      begin_upgrade(front, "thread")
      Process.kill(:TERM, @pid)
      assert_equal "", front.rest
      assert_equal "exited #{@pid} 0", front.control_line
    end
  end

  def test_a_socket_of_a_thread_ends_when_the_client_has_gone
    program = <<~'RUBY'
      run lambda { |env|
        next [200, {}, [Process.pid.to_s]] unless env["rack.hijack?"]

        io = env["rack.hijack"].call
        io.write("HTTP/1.1 101 Switching Protocols\r\n\r\n")
        $thread = Thread.new { sleep }
        [-1, {}, []]
      }
    RUBY
    FakeFront.run(program) do |front|
      pid = front.ready
      front.send_request(UPGRADE)
      front.read_until("\r\n\r\n")
      front.disconnect
      assert_equal pid.to_s, front.get("/").body
    end
  end
end
