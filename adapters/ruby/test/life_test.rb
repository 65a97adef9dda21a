# frozen_string_literal: true

require "minitest/autorun"
require_relative "fake_front"

# The app parent and its workers: the control channel, signals, and how processes end.
class LifeTest < Minitest::Test
  HELLO = <<~'RUBY'
    LOADED = Process.pid
    run lambda { |env|
      Process.kill(:KILL, Process.pid) if env["PATH_INFO"] == "/die"
      [200, {}, ["#{LOADED} #{Process.pid} #{rand}"]]
    }
  RUBY

  SLOW = <<~'RUBY'
    run lambda { |env|
      if env["PATH_INFO"] == "/slow"
        File.write(File.join(__dir__, "begun"), "")
        sleep(0.01) until File.exist?(File.join(__dir__, "go"))
      end
      [200, {}, ["done"]]
    }
  RUBY

  # The numbers of recvmsg(2) on x86_64 and aarch64.
  RECEIVES = %w[47 212].freeze

  def begin_slow_request(front)
    front.send_request({ "PATH_INFO" => "/slow", "REQUEST_URI" => "/slow" })
    Waiting.wait_until("the request has begun") { front.exist?("begun") }
  end

  def wait_until_idle(pid)
    Waiting.wait_until("the worker waits") do
      RECEIVES.include?(File.read("/proc/#{pid}/syscall").split.first)
    end
  end

  def test_the_parent_loads_once_and_reports_it
    FakeFront.run(HELLO, workers: 2, generation: 7, name: "a_long_name_of_it") do |front|
      first = front.ready
      second = front.started
      greeting = %r{\AKIRIN/1 pid=\d+ generation=7 adapter=ruby/[0-9.]+ body=descriptor(?: .*)?\z}
      assert_match(greeting, front.connect)
      loaded, pid, number = front.get("/").body.split
      assert_equal front.pid, loaded.to_i
      assert_includes [first, second], pid.to_i
      kept = front.keep
      _, other, other_number = front.get("/").body.split
      refute_equal pid, other
      refute_equal number, other_number
      names = [front.pid, first, second].map { |one| File.read("/proc/#{one}/comm").chomp }
      assert_equal ["kirin a_long_na", "kirin a_long_ 1", "kirin a_long_ 2"], names
      titles = [first, second].map { |one| File.read("/proc/#{one}/cmdline").delete("\0") }
      assert_equal ["kirin a_long_name_of_it worker 1", "kirin a_long_name_of_it worker 2"],
                   titles.map(&:strip)
      kept.close
      assert_equal 0, front.stop.exitstatus
      refute FakeFront.alive?(first) || FakeFront.alive?(second)
    end
  end

  def test_a_worker_that_ends_is_replaced
    FakeFront.run(HELLO) do |front|
      pid = front.ready
      Process.kill(:KILL, pid)
      assert_equal "exited #{pid} 9", front.control_line
      following = front.started
      assert_equal following, front.get("/").body.split[1].to_i
    end
  end

  def test_ttin_and_ttou_change_the_number_of_workers
    FakeFront.run(HELLO) do |front|
      first = front.ready
      front.kill("TTIN")
      assert_equal "workers 2", front.control_line
      second = front.started
      front.kill("TTOU")
      assert_equal "workers 1", front.control_line
      assert_equal "exited #{second} 0", front.control_line
      front.kill("TTOU")
      assert_equal "workers 1", front.control_line
      assert_equal first, front.get("/").body.split[1].to_i
    end
  end

  def test_term_lets_a_request_end
    FakeFront.run(SLOW) do |front|
      pid = front.ready
      begin_slow_request(front)
      Process.kill(:TERM, pid)
      front.write("go", "")
      response = front.response
      assert_equal %w[done close], [response.body, response["connection"]]
      assert_equal "exited #{pid} 0", front.control_line
    end
  end

  def test_term_ends_an_idle_worker_at_once
    [true, false].each do |is_connected|
      FakeFront.run(HELLO) do |front|
        pid = front.ready
        front.get("/") if is_connected
        Process.kill(:TERM, pid)
        assert_equal "exited #{pid} 0", front.control_line
        assert_equal "", front.rest if is_connected
      end
    end
  end

  def test_a_request_that_is_there_when_term_comes_is_answered
    FakeFront.run(HELLO) do |front|
      pid = front.ready
      front.get("/")
      wait_until_idle(pid)
      Process.kill(:STOP, pid)
      front.send_request
      Process.kill(:TERM, pid)
      Process.kill(:CONT, pid)
      assert_equal "close", front.response["connection"]
      assert_equal "exited #{pid} 0", front.control_line
    end
  end

  def test_a_request_after_term_is_left_unread_or_answered
    10.times do
      FakeFront.run(HELLO) do |front|
        pid = front.ready
        front.get("/")
        Process.kill(:TERM, pid)
        begin
          front.send_request
          assert_equal "close", front.response["connection"]
        rescue Errno::EPIPE, Errno::ECONNRESET, FrontConnection::Cut
          nil
        end
        assert_equal "exited #{pid} 0", front.control_line
      end
    end
  end

  def test_quit_waits_until_workers_have_left_by_themselves
    FakeFront.run(HELLO) do |front|
      pid = front.ready
      front.get("/")
      front.kill("QUIT")
      assert_equal pid, front.get("/").body.split[1].to_i
      front.disconnect
      assert_equal "exited #{pid} 0", front.control_line
      assert_nil front.control_line
      assert_equal 0, front.wait.exitstatus
    end
  end

  def test_term_may_follow_quit
    FakeFront.run(HELLO) do |front|
      front.ready
      front.get("/")
      front.kill("QUIT")
      assert_equal 200, front.get("/").status
      assert_equal 0, front.stop.exitstatus
    end
  end

  def test_int_ends_workers_at_once
    FakeFront.run(SLOW) do |front|
      front.ready
      begin_slow_request(front)
      assert_equal 0, front.stop("INT").exitstatus
      assert_raises(FrontConnection::Cut) { front.response }
    end
  end

  def test_a_worker_leaves_after_its_number_of_requests
    FakeFront.run(HELLO, max_requests: 2) do |front|
      pid = front.ready
      assert_nil front.get("/")["connection"]
      assert_equal "close", front.get("/")["connection"]
      assert_equal "exited #{pid} 0", front.control_line
      front.disconnect
      refute_equal pid, front.get("/").body.split[1].to_i
    end
  end

  def test_the_number_of_requests_is_reduced_at_random
    FakeFront.run(HELLO, max_requests: 100) do |front|
      counts = 8.times.map do
        front.connect
        (1..).find { front.get("/")["connection"] }.tap { front.disconnect }
      end
      assert(counts.all? { |count| (90..100).cover?(count) }, counts)
      assert_operator counts.uniq.size, :>, 1
    end
  end

  def test_a_worker_leaves_when_its_application_asks_for_it
    program = 'run ->(env) { env["kirin.leave"].call; [200, {}, [Process.pid.to_s]] }'
    FakeFront.run(program) do |front|
      pid = front.ready
      response = front.get("/")
      assert_equal [pid.to_s, "close"], [response.body, response["connection"]]
      assert_equal "exited #{pid} 0", front.control_line
    end
  end

  def test_workers_that_die_at_start_are_replaced_after_growing_pauses
    program = "Kirin.on_worker_boot { exit!(1) }\nrun ->(env) { [200, {}, []] }"
    FakeFront.run(program) do |front|
      assert_equal "ready", front.control_line
      times = 5.times.map do
        front.started
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
      # The first replacement comes at once, the others after 0.1 s, 0.2 s and so on.
      pauses = times.each_cons(2).map { |one, two| two - one }
      [0.1, 0.2, 0.4].zip(pauses.drop(1)) { |least, pause| assert_operator pause, :>=, least * 0.9 }
    end
  end

  def test_the_parent_ends_when_the_front_has_gone
    Dir.mktmpdir("kirin-ruby-") do |directory|
      File.write(File.join(directory, "config.ru"), SLOW)
      path = File.join(directory, "run", "workers")
      Dir.mkdir(File.dirname(path))
      listener = UNIXServer.new(path)
      # This process is the front.
      front = fork do
        spawn(RbConfig.ruby, FakeFront::PROGRAM, "--front", Process.pid.to_s, "--deadline", "60",
              "--", File.join(directory, "config.ru"),
              in: listener, out: File.open(File.join(directory, "control"), "w"))
        sleep
      end
      connection = FrontConnection.new(path)
      pid = connection.connect[/pid=(\d+)/, 1].to_i
      parent = File.read("/proc/#{pid}/stat").rpartition(")").last.split[1].to_i
      connection.send_request({ "PATH_INFO" => "/slow" })
      Waiting.wait_until { File.exist?(File.join(directory, "begun")) }
      Process.kill(:KILL, front)
      Process.wait(front)
      File.write(File.join(directory, "go"), "")
      # The request in progress is finished.
      assert_equal "done", connection.response.body
      Waiting.wait_until("both have ended") { [pid, parent].none? { |one| FakeFront.alive?(one) } }
      refute File.exist?(File.dirname(path))
    end
  end

  def test_a_worker_does_not_outlive_front_and_parent_for_long
    program = <<~'RUBY'
      run lambda { |env|
        File.write(File.join(__dir__, "begun"), "")
        loop { sleep }
      }
    RUBY
    FakeFront.run(program, deadline: 0.5) do |front|
      pid = front.ready
      front.send_request({ "PATH_INFO" => "/hang" })
      Waiting.wait_until { front.exist?("begun") }
      front.kill("KILL")
      Waiting.wait_until("the worker has ended") { !FakeFront.alive?(pid) }
    end
  end

  def test_an_overdue_request_is_logged_with_all_stacks_and_ends_its_worker
    program = <<~'RUBY'
      def begin_with(name)
        File.write(File.join(__dir__, "begun#{name}"), "")
      end

      # The signal may come as soon as the file is there.
      def wait_in_the_application
        begin_with("wait")
        sleep
      end

      def loop_in_the_application
        begin_with("loop")
        loop { nil }
      end

      run lambda { |env|
        helper = Thread.new { sleep }
        helper.name = "a helper"
        Thread.pass until helper.stop?
        env["PATH_INFO"] == "/loop" ? loop_in_the_application : wait_in_the_application
      }
    RUBY
    %w[wait loop].each do |name|
      FakeFront.run(program) do |front|
        pid = front.ready
        front.send_request({ "PATH_INFO" => "/#{name}", "REQUEST_URI" => "/#{name}?late" })
        Waiting.wait_until { front.exist?("begun#{name}") }
        Process.kill(:USR2, pid)
        assert_equal "exited #{pid} 0", front.control_line
        assert_raises(FrontConnection::Cut) { front.response }
        log = front.wait_for_log(/kirin: worker #{pid}: GET \/#{name}\?late: took too long/)
        assert_match(/took too long.*\n(  .*\n)*  .*in `#{name}_in_the_application'/, log)
        assert_match(/  thread a helper:\n  .*in `sleep'/, log)
        refute_match(%r{lib/kirin}, log)
      end
    end
  end

  def test_an_idle_worker_leaves_on_usr2
    FakeFront.run(HELLO) do |front|
      pid = front.ready
      front.get("/")
      wait_until_idle(pid)
      Process.kill(:USR2, pid)
      assert_equal "exited #{pid} 0", front.control_line
      assert_empty front.log
    end
  end

  def test_a_connection_that_ends_lets_the_worker_go_or_accept_another_one
    FakeFront.run(HELLO) do |front|
      pid = front.ready
      front.get("/")
      front.disconnect
      assert_equal "exited #{pid} 0", front.control_line
    end
  end

  def test_wrong_options_are_named
    [[], ["--what", "x", "--", "a"], ["--workers", "x", "a"], ["--preload", "maybe", "a"],
     ["--workers"], %w[a b]].each do |words|
      output = IO.popen([RbConfig.ruby, FakeFront::PROGRAM, *words, err: %i[child out]], &:read)
      assert_match(/\Akirin-worker: /, output, words)
    end
  end
end
