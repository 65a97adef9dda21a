# frozen_string_literal: true

require_relative "log"

module Kirin
  # What the first worker tells the app parent about the start of the application, over a pipe.
  class News
    # What it tells when the application has started, and the end of each text.
    STARTED = "started"
    ENDING = "\0"

    # `pipe` leads to the parent in the first worker, and is nil in others.
    def initialize(pipe)
      @pipe = pipe
    end

    # Says that the application has started, or why it has not. Later reasons are logged.
    def tell(reason = nil)
      pipe = @pipe
      @pipe = nil
      if pipe
        pipe.write((reason || STARTED).b.tr(ENDING, "?"), ENDING)
        pipe.close
      elsif reason
        Log.line("kirin: worker #{Process.pid}: #{reason}")
      end
    end
  end
end
