# frozen_string_literal: true

require "minitest/autorun"
require_relative "fake_front"
require_relative "ring_relay"

# What is special to workers with a ring. ring_differential_test.rb and ring_everywhere_test.rb
# compare them with others.
class RingTest < Minitest::Test
  PID = "run ->(env) { [200, {}, [Process.pid.to_s]] }"

  # The numbers of futex(2) on x86_64 and aarch64.
  FUTEX = %w[202 98].freeze

  def setup
    skip RingTool.missing if RingTool.missing
  end

  # Runs a front whose requests go through a ring.
  def with_ring(program, **options)
    FakeFront.run(program, **options) do |front|
      front.extend(RingRelay)
      yield front
    end
  end

  def wait_until_it_sleeps(pid)
    Waiting.wait_until("the worker sleeps") do
      FUTEX.include?(File.read("/proc/#{pid}/syscall").split.first)
    end
  end

  # Has fronts start another program.
  def with_program(path)
    before = FakeFront.send(:remove_const, :PROGRAM)
    FakeFront.const_set(:PROGRAM, path)
    yield
  ensure
    FakeFront.send(:remove_const, :PROGRAM)
    FakeFront.const_set(:PROGRAM, before)
  end

  def ask(front, path)
    front.get(path, "QUERY_STRING" => path.delete_prefix("/"))
  end

  # ---------------------------------------------------------------- attaching

  def test_without_the_ring_a_worker_does_not_offer_it
    ["", "ENV.clear\n"].each do |deed|
      FakeFront.run("#{deed}#{PID}", environment: { "KIRIN_RING" => "0" }) do |front|
        refute_match(/speaks/, front.connect)
        assert_equal 200, front.get("/").status
      end
    end
  end

  def test_without_the_compiled_part_a_worker_says_nothing
    Dir.mktmpdir do |directory|
      adapter = File.expand_path("..", __dir__)
      FileUtils.cp_r(%w[bin lib].map { |name| File.join(adapter, name) }, directory)
      with_program(File.join(directory, "bin/kirin-worker")) do
        FakeFront.run(PID) do |front|
          refute_match(/speaks/, front.connect)
          assert_equal front.ready.to_s, front.get("/").body
          assert_empty front.log
        end
      end
    end
  end

  def test_a_front_that_has_no_ring
    FakeFront.run(PID) do |front|
      pid = front.ready
      assert_match(/ speaks=2$/, front.connect)
      Process.kill(:TERM, pid)
      assert_equal "exited #{pid} 0", front.control_line, "TERM while it waits for the first words"
      other = front.started
      front.connect
      assert_equal other.to_s, front.get("/").body
      Process.kill(:TERM, other)
      assert_equal "exited #{other} 0", front.control_line
    end
  end

  def test_a_front_that_offers_something_else
    FakeFront.run(PID) do |front|
      ["KIRIN/2 seat=0\n", "KIRIN/3 something\n", "K\n"].each do |line|
        front.connect
        front.connection.write(line)
        assert_equal "socket", front.read_until("\n"), line
        assert_equal 200, front.get("/").status
        front.disconnect
      end
    end
  end

  def test_a_worker_that_attaches_again_and_again_keeps_nothing
    with_ring(<<~'RUBY') do |front|
      run lambda { |env|
        if env["PATH_INFO"] == "/endless"
          [200, {}, ->(stream) { loop { stream.write("x" * 9999) } }]
        else
          descriptors = Dir.children("/proc/self/fd").size
          rings = File.readlines("/proc/self/maps").grep(/memfd:ring/).size
          [200, {}, ["#{Process.pid} #{descriptors} #{rings}"]]
        end
      }
    RUBY
      first = front.get("/").body
      5.times do
        # The worker keeps running if its response is cut.
        front.send_request({ "PATH_INFO" => "/endless" })
        front.read_until("\r\n\r\n")
        front.disconnect
        assert_equal first, front.get("/").body
      end
      assert_match(/ 1\z/, first)
    end
  end

  # ---------------------------------------------------------------- signals

  def test_a_worker_that_sleeps_hears_signals
    %i[TERM QUIT USR2].each do |signal|
      with_ring(PID) do |front|
        pid = front.ready
        assert_equal pid.to_s, front.get("/").body
        wait_until_it_sleeps(pid)
        Process.kill(signal, pid)
        assert_equal "exited #{pid} 0", front.control_line
        front.disconnect
        assert_equal front.started.to_s, front.get("/").body
        assert_empty front.log
      end
    end
  end

  def test_term_in_a_request_lets_it_end
    with_ring(<<~'RUBY') do |front|
      run lambda { |env|
        File.write("begun", "")
        sleep(0.01) until File.exist?("go")
        [200, {}, ["done"]]
      }
    RUBY
      pid = front.ready
      front.send_request
      Waiting.wait_until("it has begun") { front.exist?("begun") }
      Process.kill(:TERM, pid)
      front.write("go", "")
      response = front.response
      assert_equal ["done", "close"], [response.body, response["connection"]]
      assert_equal "exited #{pid} 0", front.control_line
    end
  end

  def test_a_signal_of_the_application_runs_its_handler_while_the_worker_sleeps
    with_ring(<<~'RUBY') do |front|
      $count = 0
      run lambda { |env|
        trap("USR1") { $count += 1; File.write("heard", $count.to_s) }
        [200, {}, ["#{Process.pid} #{$count}"]]
      }
    RUBY
      pid = front.get("/").body.split.first.to_i
      wait_until_it_sleeps(pid)
      Process.kill(:USR1, pid)
      Waiting.wait_until("the handler has run") { front.exist?("heard") }
      assert_equal "#{pid} 1", front.get("/").body
    end
  end

  def test_threads_of_the_application_run_while_the_worker_sleeps
    with_ring(<<~'RUBY') do |front|
      $count = 0
      run lambda { |env|
        $thread ||= Thread.new do
          while ($count += 1)
            sleep(0.001)
            File.write("ran", "") if $count == 50
          end
        end
        [200, {}, [$count.to_s]]
      }
    RUBY
      front.get("/")
      Waiting.wait_until("the thread runs") { front.exist?("ran") }
      assert_operator front.get("/").body.to_i, :>=, 50
    end
  end

  def test_an_exception_that_another_thread_raises_is_not_lost
    with_ring(<<~'RUBY') do |front|
      run lambda { |env|
        main = Thread.current
        Thread.new { main.raise("from a thread") }.join if env["PATH_INFO"] == "/raise"
        sleep(1) if env["PATH_INFO"] == "/raise"
        [200, {}, ["hello"]]
      }
    RUBY
      assert_equal 500, front.get("/raise").status
      assert_equal "hello", front.get("/").body
      front.wait_for_log(/from a thread/)
    end
  end

  def test_a_worker_whose_parent_is_killed_ends
    with_ring(PID) do |front|
      pid = front.get("/").body.to_i
      wait_until_it_sleeps(pid)
      front.stop("KILL")
      Waiting.wait_until("the worker has ended") { !FakeFront.alive?(pid) }
    end
  end

  def test_a_worker_that_is_killed_is_replaced
    with_ring(PID) do |front|
      pid = front.ready
      assert_equal pid.to_s, front.get("/").body
      Process.kill(:KILL, pid)
      assert_equal "exited #{pid} 9", front.control_line
      front.disconnect
      assert_equal front.started.to_s, front.get("/").body
    end
  end

  def test_the_log_has_where_a_request_hangs
    with_ring(<<~'RUBY') do |front|
      def hang
        warn("begun")
        sleep(100)
      end
      run ->(env) { hang }
    RUBY
      pid = front.ready
      front.send_request({ "REQUEST_URI" => "/hang" })
      front.wait_for_log(/begun/)
      Process.kill(:USR2, pid)
      log = front.wait_for_log(%r{GET /hang: took too long, here:\n.*hang'}m)
      refute_match(/ring_transport/, log)
    end
  end

  def test_workers_leave_after_their_requests
    with_ring(PID, max_requests: 3) do |front|
      front.ready
      pids = Array.new(9) do
        response = front.get("/")
        front.disconnect if response["connection"] == "close"
        response.body
      end
      assert_equal [3, 3, 3], pids.tally.values
    end
  end

  # ---------------------------------------------------------------- forks

  def test_processes_that_an_application_has_forked_do_not_answer
    with_ring(<<~'RUBY') do |front|
      KINDS = {
        "plain" => ->(_) { [200, {}, ["from the child"]] },
        "long" => ->(_) { [200, {}, ["x" * 100_000]] },
        "parts" => ->(_) { [200, {}, ["a", "b"].each] },
        "stream" => ->(_) { [200, {}, ->(stream) { stream.write("from the child") }] },
        "hints" => ->(env) { env["rack.early_hints"].call("link" => "</child>"); exit!(1) },
        "raise" => ->(_) { raise "in the child" },
        "nil" => ->(_) { nil },
        "exit" => ->(_) { exit(1) }
      }
      run lambda { |env|
        kind = env["QUERY_STRING"]
        return_pid = [200, {}, [Process.pid.to_s]]
        next return_pid if kind.empty?

        pid = fork
        next KINDS.fetch(kind).call(env) if pid.nil?

        Process.wait(pid)
        [200, {}, [$?.exitstatus.to_s]]
      }
    RUBY
      pid = front.get("/").body
      %w[plain long parts stream hints raise nil exit].each do |kind|
        assert_equal "1", ask(front, "/#{kind}").body, kind
        assert_equal pid, front.get("/").body, kind
      end
      front.wait_for_log(/forked returned from the application/)
    end
  end

  # ---------------------------------------------------------------- applications

  def test_applications_that_change_their_process_while_it_loads
    ["ENV.clear", "Dir.chdir('/')", "$LOADED_FEATURES.clear"].each do |deed|
      with_ring("#{deed}\nrun ->(env) { [200, {}, ['hello']] }") do |front|
        assert_equal "hello", front.get("/").body, deed
      end
    end
  end

  def test_no_descriptor_of_the_ring_takes_the_place_of_a_stream
    with_ring(<<~'RUBY') do |front|
      run lambda { |env|
        case env["PATH_INFO"]
        when "/close" then (0..2).each { |number| IO.for_fd(number).close }
        when "/endless"
          next [200, {}, ->(stream) { loop { stream.write("x" * 9999) } }]
        end
        found = (0..2).map { |number| File.readlink("/proc/self/fd/#{number}") rescue "" }
        [200, {}, [found.grep(/eventfd|memfd/).join]]
      }
    RUBY
      assert_equal "", front.get("/close").body
      front.send_request({ "PATH_INFO" => "/endless" })
      front.read_until("\r\n\r\n")
      front.disconnect
      assert_equal "", front.get("/").body
    end
  end

  def test_objects_of_a_request_go_with_it
    with_ring(<<~'RUBY') do |front|
      class Kept; end
      run lambda { |env|
        GC.start
        count = ObjectSpace.each_object(Kept).count
        env["kept"] = Array.new(100) { Kept.new }
        [200, {}, [count.to_s]]
      }
    RUBY
      counts = Array.new(10) { front.get("/").body.to_i }
      # The collector may take a word on the stack for an object.
      assert_operator counts.max, :<, 300
    end
  end
end
