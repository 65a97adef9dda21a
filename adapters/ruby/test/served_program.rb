# frozen_string_literal: true

require_relative "fake_front"

# For tests of one application, which is the constant PROGRAM of the test.
module ServedProgram
  # Runs the block with a front whose worker, @pid, is there. `options` are those of FakeFront.run.
  def with_front(program = self.class::PROGRAM, **options)
    FakeFront.run(program, **options) do |front|
      @pid = front.ready
      yield front
    end
  end
end
