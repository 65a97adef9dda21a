# frozen_string_literal: true

require "minitest/autorun"
require_relative "served_program"

# Early hints, and what an application does when the client has its response.
class AfterResponseTest < Minitest::Test
  include ServedProgram

  PROGRAM = <<~'RUBY'
    def meet
      File.write(File.join(__dir__, "begun"), "")
      sleep(0.01) until File.exist?(File.join(__dir__, "go"))
    end

    def note(text)
      $stderr.puts(text)
    end

    HINT = { "Link" => "</a.css>; rel=preload" }
    ACTIONS = {
      "puma" => lambda { |env|
        env["rack.after_reply"] << -> { meet; note("after reply") }
        [200, {}, ["a"]]
      },
      "rack" => lambda { |env|
        2.times do |number|
          env["rack.response_finished"] << lambda { |of_env, status, headers, error|
            note([number, of_env.equal?(env), status, headers, error].inspect)
          }
        end
        [201, { "X-A" => "b" }, ["a"]]
      },
      "late" => lambda { |env|
        late = -> { meet; note("late") }
        [200, {}, (1..2).lazy.map { |one| env["rack.after_reply"] << late if one == 2; "a" }]
      },
      "die" => lambda { |env|
        env["rack.after_reply"] << -> { raise "a bad handler" } << -> { note("the next runs") }
        [200, {}, ["a"]]
      },
      "after-die" => lambda { |env|
        env["rack.response_finished"] << ->(_, *outcome) { note(outcome.inspect) }
        raise "a bad day"
      },
      "leave" => lambda { |env|
        env["rack.after_reply"] << -> { note("left") }
        env["kirin.leave"].call
        [200, {}, ["a"]]
      },
      "exit" => ->(env) { env["rack.after_reply"] << -> { exit }; [200, {}, ["a"]] },
      "fork" => lambda { |env|
        env["rack.after_reply"] << -> { pid = fork; Process.wait(pid) if pid }
        [200, {}, ["a"]]
      },
      "hints" => lambda { |env|
        env["rack.early_hints"].call(HINT.merge("Set-Cookie" => %w[a b]))
        meet
        env["rack.early_hints"].call("Link" => "</b.css>\n</c.css>")
        [200, {}, ["hinted"]]
      },
      "hints-late" => lambda { |env|
        hint = -> { env["rack.early_hints"].call(HINT) }
        [200, {}, (1..2).lazy.map { |one| hint.call if one == 2; "part" }]
      },
      "hints-evil" => lambda do |env|
        env["rack.early_hints"].call("Link" => "a\r\nb")
      rescue StandardError => error
        [200, {}, [error.message]]
      end,
      "hints-thread" => lambda { |env|
        error = nil
        Thread.new { env["rack.early_hints"].call(HINT) rescue error = $! }.join
        [200, {}, [error.message]]
      },
      "hints-die" => ->(env) { env["rack.early_hints"].call(HINT); raise "a bad day" },
      "pid" => ->(_) { [200, {}, [Process.pid.to_s]] }
    }
    run ->(env) { ACTIONS.fetch(env["PATH_INFO"].delete_prefix("/")).call(env) }
  RUBY

  def test_the_front_is_told_of_work_after_the_response_and_of_its_end
    with_front do |front|
      response = front.get("/puma")
      assert_equal %w[a 1], [response.body, response["kirin-cleanup"]]
      Waiting.wait_until { front.exist?("begun") }
      refute_match(/after reply/, front.log)
      front.write("go", "")
      assert_equal "", front.read_until("\n")
      assert_match(/^after reply$/, front.log)
      assert_nil front.get("/pid")["kirin-cleanup"]
    end
  end

  def test_handlers_of_rack_get_request_and_response_in_the_reverse_order
    with_front do |front|
      front.get("/rack")
      front.read_until("\n")
      lines = [1, 0].map { |number| [number, true, 201, { "X-A" => "b" }, nil].inspect }
      assert_equal lines, front.log.lines.map(&:chomp)
      assert_equal 500, front.get("/after-die").status
      front.wait_for_log(/^\[nil, nil, #<RuntimeError: a bad day>\]$/)
    end
  end

  def test_work_of_which_the_head_did_not_tell_comes_behind_the_connection
    with_front do |front|
      response = front.get("/late")
      assert_equal ["aa", nil], [response.body, response["kirin-cleanup"]]
      assert_equal "", front.rest
      Waiting.wait_until { front.exist?("begun") }
      front.write("go", "")
      front.disconnect
      assert_equal @pid.to_s, front.get("/pid").body
      assert_match(/^late$/, front.log)
    end
  end

  def test_a_handler_that_fails_does_not_keep_the_next_one_from_running
    with_front do |front|
      front.get("/die")
      front.read_until("\n")
      assert_match(%r{worker #{@pid}: GET /die: a bad handler \(RuntimeError\)}, front.log)
      assert_match(/^the next runs$/, front.log)
      front.get("/exit")
      front.read_until("\n")
      assert_match(%r{GET /exit: exit \(SystemExit\)}, front.log)
      front.get("/fork")
      assert_equal "", front.read_until("\n")
      front.wait_for_log(/process \d+: GET \/fork: a process that the application has forked/)
      assert_equal @pid.to_s, front.get("/pid").body
    end
  end

  def test_a_worker_that_leaves_does_its_work_before
    with_front do |front|
      response = front.get("/leave")
      assert_equal %w[1 close], response.fields.to_h.values_at("kirin-cleanup", "connection")
      assert_equal "", front.rest
      assert_equal "exited #{@pid} 0", front.control_line
      assert_match(/^left$/, front.log)
    end
  end

  def test_early_hints_are_sent_at_once
    with_front do |front|
      front.send_request({ "PATH_INFO" => "/hints" })
      assert_equal [103, [["link", "</a.css>; rel=preload"], %w[set-cookie a], %w[set-cookie b]]],
                   front.response.to_a.first(2)
      front.write("go", "")
      assert_equal %w[</b.css> </c.css>], front.response.values("link")
      assert_equal "hinted", front.response.body
    end
  end

  def test_early_hints_that_cannot_be_sent_are_errors_of_the_application
    with_front do |front|
      assert_match(/line end or NUL/, front.get("/hints-evil").body)
      assert_match(/comes after the response has begun/, front.get("/hints-thread").body)
      assert_equal 103, front.get("/hints-die").status
      assert_equal 500, front.response.status
      response = front.get("/hints-late")
      assert_equal ["part", true], [response.body, response.is_cut]
      front.wait_for_log(/comes after the response has begun/)
    end
  end
end
