# frozen_string_literal: true

require "minitest/autorun"
require_relative "served_program"

# What an application may raise, and what happens in the processes that it forks.
class ErrorsTest < Minitest::Test
  include ServedProgram

  PROGRAM = <<~'RUBY'
    class Silent < StandardError
      def message
        raise "no text"
      end
    end

    def deep(count)
      deep(count + 1) + 1
    end

    class Failing
      def initialize(*parts)
        @parts = parts
      end

      def each
        @parts.each { |part| yield part }
        raise "too late"
      end
    end

    class BadClose
      def each
        yield "one"
      end

      def close
        raise "a bad close"
      end
    end

    ACTIONS = {
      "raise" => -> { raise "a bad day" },
      "lines" => -> { raise "a bad\nday\e[1m" },
      "cause" => -> { begin; raise "the cause"; rescue StandardError; raise "the effect"; end },
      "silent" => -> { raise Silent },
      "exit" => -> { exit(3) }, "abort" => -> { abort("the last words") },
      "interrupt" => -> { raise Interrupt }, "memory" => -> { raise NoMemoryError },
      "deep" => -> { deep(1) }, "throw" => -> { throw(:async) },
      "script" => -> { raise NotImplementedError, "not written yet" },
      "syntax" => -> { eval("((((") }, "thread" => -> { Thread.exit },
      "frozen" => -> { "a".freeze << "b" },
      "anonymous" => -> { raise Class.new(StandardError), "no name" },
      "binary" => -> { raise "caf\xE9".b },
      "first" => -> { [200, {}, Failing.new] }, "later" => -> { [200, {}, Failing.new("part")] },
      "close" => -> { [200, {}, BadClose.new] },
      "caught" => -> { begin; raise "caught"; rescue StandardError; [200, {}, ["caught"]]; end },
      "exit!" => -> { exit!(3) },
      "child-dies" => lambda {
        pid = fork
        raise "a bad child" unless pid
        [200, {}, [Process.wait(pid).to_s]]
      },
      "child-answers" => lambda {
        pid = fork
        Process.wait(pid) if pid
        [200, {}, [pid ? "parent" : "child"]]
      },
      "child-exits" => lambda {
        pid = fork
        exit(7) unless pid
        [200, {}, [Process.wait2(pid).last.exitstatus.to_s]]
      },
      "block" => -> { pid = fork { raise "in a block" }; Process.wait(pid); [200, {}, ["parent"]] },
      "popen" => lambda {
        [200, {}, [IO.popen("-") { |io| io ? io.read : print("from the child") }.to_s]]
      },
      "program" => -> { [200, {}, [`echo hello`]] }
    }
    at_exit { $stderr.puts "at exit in #{Process.pid}" }
    run ->(env) { ACTIONS.fetch(env["PATH_INFO"].delete_prefix("/")).call }
  RUBY

  def test_whatever_is_raised_is_500_and_logged
    expected = {
      "raise" => /a bad day \(RuntimeError\) request_id=id-1\n  .*config.ru:\d+:in /,
      "silent" => /Silent request_id=id-1\n  .*config.ru:/,
      "exit" => /exit \(SystemExit\)/, "abort" => /the last words \(SystemExit\)/,
      "interrupt" => /Interrupt/, "memory" => /NoMemoryError/,
      "deep" => /too deep \(SystemStackError\).*\n(  .*\n){50}  … \d+ more …\n/,
      "throw" => /uncaught throw :async \(UncaughtThrowError\)/,
      "script" => /not written yet \(NotImplementedError\)/, "syntax" => /syntax error/,
      "thread" => /SystemExit/, "frozen" => /can't modify frozen String.*\(FrozenError\)/,
      "anonymous" => /no name \(#<Class:0x\h+>\)/, "binary" => /caf\? \(RuntimeError\)/,
      "first" => /too late/
    }
    with_front do |front|
      expected.each do |name, text|
        response = front.get("/#{name}", "HTTP_X_REQUEST_ID" => "id-1")
        assert_equal [500, "Internal Server Error\nRequest id: id-1\n"],
                     [response.status, response.body], name
        assert_equal %w[text/plain id-1],
                     response.fields.to_h.values_at("content-type", "x-request-id")
        start = "kirin: worker #{@pid}: GET /#{name}: "
        front.wait_for_log(/#{Regexp.escape(start)}.*#{text}/)
      end
      assert_equal "caught", front.get("/caught").body
      refute_match(/GET \/caught/, front.log)
    end
  end

  def test_an_entry_is_indented_and_has_the_request_id_the_cause_and_no_frame_of_kirin
    with_front do |front|
      front.get("/lines", "HTTP_X_REQUEST_ID" => "id-1")
      front.get("/cause")
      log = front.wait_for_log(/caused by: the cause \(RuntimeError\)\n  /)
      assert_match(/GET \/lines: a bad \(RuntimeError\) request_id=id-1\n  day\?\[1m\n  /, log)
      refute_match(%r{lib/kirin/}, log)
      entries = log.lines.reject { |line| line.start_with?(" ") }
      assert(entries.all?(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z kirin: worker /), log)
    end
  end

  def test_an_error_behind_the_head_cuts_the_response_and_the_worker_serves_on
    with_front do |front|
      response = front.get("/later")
      assert_equal ["part", true], [response.body, response.is_cut]
      front.wait_for_log(%r{GET /later: too late})
      front.disconnect
      assert_equal "one", front.get("/close").body
      front.wait_for_log(%r{GET /close: a bad close})
      assert_equal "hello\n", front.get("/program").body
      assert FakeFront.alive?(@pid)
    end
  end

  def test_a_worker_that_ends_in_a_request_is_replaced
    with_front do |front|
      assert_raises(FrontConnection::Cut) { front.get("/exit!") }
      assert_equal "exited #{@pid} #{3 << 8}", front.control_line
      front.disconnect
      assert_equal "caught", front.get("/caught").body
    end
  end

  def test_a_child_does_not_answer_in_the_place_of_its_worker
    with_front do |front|
      assert_match(/\A\d+\z/, front.get("/child-dies").body)
      front.wait_for_log(%r{GET /child-dies: a bad child})
      assert_equal "parent", front.get("/child-answers").body
      front.wait_for_log(/has forked returned from the application; it ends/)
      assert_equal "7", front.get("/child-exits").body
      assert_equal "parent", front.get("/block").body
      assert_equal "from the child", front.get("/popen").body
      assert_equal "hello\n", front.get("/program").body
      front.stop
    end
  end

  def test_what_runs_at_the_exit_runs_in_each_worker_that_leaves
    with_front do |front|
      front.stop
      front.wait_for_log(/^at exit in #{@pid}$/)
    end
  end
end
