# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require_relative "ring_tool"

# Runs the tests that have a front of their own once more, with workers that get their requests
# through a ring.
class RingEverywhereTest < Minitest::Test
  # Tests of what is different with the ring, or what the relay cannot do. ring_test.rb has such
  # tests for the ring.
  OTHERS = [
    # The relay does not pass on descriptors.
    /as_a_descriptor/, /descriptors_of_bodies/,
    # The worker does not offer to use the ring, and the relay demands that.
    /without_descriptors/,
    # They wait until the worker waits in recvmsg(2).
    /an_idle_worker_leaves_on_usr2/, /a_request_that_is_there_when_term_comes/
  ].freeze

  FILES = Dir[File.join(__dir__, "*_test.rb")].sort.reject do |path|
    File.basename(path).start_with?("ring_") || !File.read(path).match?(/fake_front|served_program/)
  end

  FILES.each do |path|
    define_method("test_#{File.basename(path, "_test.rb")}") do
      skip RingTool.missing if RingTool.missing
      output, status = Open3.capture2e(
        RbConfig.ruby, "-r#{File.join(__dir__, "ring_everywhere.rb")}", path,
        "--exclude", "/#{Regexp.union(OTHERS)}/"
      )
      assert status.success?, output
    end
  end
end
