# frozen_string_literal: true

require_relative "log"

module Kirin
  # The channel on which the app parent reports events to the front, one line each.
  class ControlChannel
    # The most bytes of a line.
    LINE_BYTES = 16 * 1024

    attr_reader :stream

    def initialize(stream)
      @stream = stream
    end

    # Sends a line. Line ends inside become `\n`.
    def report(*words)
      text = words.join(" ").gsub("\\") { "\\\\" }.gsub("\n") { "\\n" }
      @stream.syswrite("#{text.byteslice(0, LINE_BYTES - 1).b}\n".b)
    rescue SystemCallError
      # The front may have gone. The next tick finds out.
      nil
    end

    def close
      @stream.close
    end
  end
end
