# frozen_string_literal: true

require "minitest/autorun"
require_relative "served_program"

# What an application may do to its process.
class ProcessStateTest < Minitest::Test
  include ServedProgram

  def test_handlers_of_the_application_do_not_stay_in_a_worker
    program = <<~'RUBY'
      ACTIONS = {
        "/global" => -> { %w[TERM QUIT USR2 PIPE].each { |name| trap(name, "IGNORE") } },
        "/signal" => -> { Signal.trap("TERM") { nil } },
        "/kernel" => -> { Kernel.trap("TERM", "IGNORE") },
        "/raise" => -> { trap("TERM", "IGNORE"); raise "a bad day" }
      }
      run ->(env) { ACTIONS.fetch(env["PATH_INFO"]).call; [200, {}, ["done"]] }
    RUBY
    %w[/global /signal /kernel /raise].each do |path|
      with_front(program) do |front|
        front.get(path)
        Process.kill(:TERM, @pid)
        assert_equal "exited #{@pid} 0", front.control_line, path
      end
    end
  end

  def test_other_signals_are_the_applications
    program = <<~'RUBY'
      trap("INT") { $stderr.puts "interrupted in #{Process.pid}" }
      trap("TTIN", "IGNORE")
      run ->(env) { [200, {}, [`grep SigIgn /proc/#{Process.pid}/status`]] }
    RUBY
    with_front(program) do |front|
      ignored = front.get("/").body[/\h{16}/].to_i(16)
      assert_equal 1, ignored[Signal.list["TTIN"] - 1]
      assert_equal 0, ignored[Signal.list["TTOU"] - 1]
      assert_equal 0, ignored[Signal.list["PIPE"] - 1]
      Process.kill(:INT, @pid)
      front.wait_for_log(/^interrupted in #{@pid}$/)
      front.kill("TTIN")
      assert_equal "workers 2", front.control_line
    end
  end

  def test_handlers_that_are_set_while_loading_do_not_stay_in_the_parent
    program = <<~'RUBY'
      %w[TERM QUIT INT CHLD TTIN TTOU].each { |name| trap(name, "IGNORE") }
      run ->(env) { [200, {}, ["done"]] }
    RUBY
    with_front(program) do |front|
      Process.kill(:KILL, @pid)
      assert_equal "exited #{@pid} 9", front.control_line
      front.started
      front.kill("TTIN")
      assert_equal "workers 2", front.control_line
      assert_equal 0, front.stop.exitstatus
    end
  end

  def test_what_the_application_prints_goes_to_the_log_and_not_to_the_front
    program = <<~'RUBY'
      puts "ready"
      $stdout.puts "failed by the application"
      system("echo failed by a program")
      STDERR.print "no line end"
      warn "a warning"
      run lambda { |env|
        puts "on standard output", [1, [2]]
        $stdout << "appended\n"
        $stderr.write("two ", "parts\n")
        printf("%03d\n", 7)
        [200, {}, [$stdin.read.inspect]]
      }
    RUBY
    with_front(program) do |front|
      assert_equal '""', front.get("/").body
      assert_equal ["ready", "failed by the application", "failed by a program",
                    "no line enda warning", "on standard output", "1", "2", "appended", "two parts",
                    "007"], front.log.lines.map(&:chomp)
    end
  end

  def test_streams_that_are_closed_or_opened_again_disturb_nothing
    program = <<~'RUBY'
      run lambda { |env|
        case env["PATH_INFO"]
        when "/close" then [$stdin, $stdout, $stderr].each(&:close)
        when "/reopen"
          [$stdout, $stderr].each { |one| one.reopen(File.join(__dir__, "own"), "a") }
        when "/own" then puts("to the own log")
        when "/replace" then $stdout = $stderr = StringIO.new
        else raise "a bad day"
        end
        [200, {}, ["done"]]
      }
    RUBY
    %w[/close /reopen /replace].each do |path|
      with_front(program) do |front|
        assert_equal "done", front.get(path).body
        assert_equal 500, front.get("/die").status
        front.wait_for_log(%r{GET /die: a bad day})
        next if path != "/reopen"

        front.get("/own")
        assert_equal "to the own log\n", File.read(File.join(front.directory, "own"))
      end
    end
  end

  def test_a_log_that_nobody_reads_or_that_is_full_stops_nothing
    program = <<~'RUBY'
      run lambda { |env|
        $stderr.puts("x" * 100_000)
        puts("x" * 100_000)
        env["rack.errors"].puts("x" * 100_000)
        raise "a bad day" if env["PATH_INFO"] == "/die"

        [200, {}, ["done"]]
      }
    RUBY
    read, write = IO.pipe
    with_front(program, stderr: write) do |front|
      # Nobody reads, so that the pipe gets full.
      8.times { assert_equal "done", front.get("/").body }
      read.close
      assert_equal "done", front.get("/").body
      assert_equal 500, front.get("/die").status
    end
    with_front(program, stderr: "/dev/full") { |front| assert_equal "done", front.get("/").body }
  ensure
    [read, write].each { |one| one.close unless one.closed? }
  end

  def test_each_worker_draws_its_own_random_numbers
    program = <<~'RUBY'
      srand(42)
      run ->(env) { [200, {}, [rand.to_s]] }
    RUBY
    with_front(program, workers: 2) do |front|
      first = front.get("/").body
      front.keep
      refute_equal first, front.get("/").body
    end
  end

  def test_directory_umask_and_environment_stay_as_the_application_leaves_them
    program = <<~'RUBY'
      Dir.chdir("/")
      File.umask(0o77)
      ENV["MINE"] = "here"
      run ->(env) { [200, {}, [[Dir.pwd, File.umask, ENV["MINE"], $0, ARGV].inspect]] }
    RUBY
    with_front(program) do |front|
      assert_match(%r{\A\["/", 63, "here", ".*kirin-worker", \[\]\]\z}, front.get("/").body)
    end
  end

  def test_an_application_may_change_its_environment_and_the_next_request_does_not_see_it
    program = <<~'RUBY'
      run lambda { |env|
        left = env.key?("HTTP_X_LEFT")
        env["HTTP_X_LEFT"] = "behind"
        %w[PATH_INFO QUERY_STRING REQUEST_METHOD rack.after_reply].each { |name| env.delete(name) }
        [200, {}, [left.inspect]]
      }
    RUBY
    with_front(program) { |front| 2.times { assert_equal "false", front.get("/").body } }
  end

  def test_a_process_in_the_background_outlives_its_worker_and_lets_the_front_see_its_end
    program = <<~'RUBY'
      run lambda { |env|
        pid = fork do
          sleep(0.01) until File.exist?(File.join(__dir__, "go"))
          File.write(File.join(__dir__, "done"), "")
          exit!(0)
        end
        Process.detach(pid)
        [200, {}, [pid.to_s]]
      }
    RUBY
    with_front(program) do |front|
      child = front.get("/").body.to_i
      Process.kill(:KILL, @pid)
      assert_equal "", front.rest
      front.disconnect
      assert FakeFront.alive?(child)
      assert_equal 0, front.stop.exitstatus
      nil while front.control_line
      front.write("go", "")
      Waiting.wait_until { front.exist?("done") }
    end
  end

  def test_term_ends_a_process_that_the_application_has_forked
    program = <<~'RUBY'
      run ->(env) { pid = fork { sleep }; Process.detach(pid); [200, {}, [pid.to_s]] }
    RUBY
    with_front(program) do |front|
      2.times do
        child = front.get("/").body.to_i
        Process.kill(:TERM, child)
        Waiting.wait_until("the child has ended") { !FakeFront.alive?(child) }
        assert FakeFront.alive?(@pid)
      end
    end
  end

  def test_a_process_that_is_forked_while_loading_has_no_channels
    program = <<~'RUBY'
      pid = fork do
        sleep(0.01) until File.exist?(File.join(__dir__, "go"))
        exit!(0)
      end
      Process.detach(pid)
      File.write(File.join(__dir__, "child"), pid.to_s)
      run ->(env) { [200, {}, []] }
    RUBY
    # A thread waits for the child.
    with_front(program, preload: "true") do |front|
      assert_equal 0, front.stop.exitstatus
      nil while front.control_line
      child = File.read(File.join(front.directory, "child")).to_i
      assert FakeFront.alive?(child)
      front.write("go", "")
      Waiting.wait_until { !FakeFront.alive?(child) }
    end
  end
end
