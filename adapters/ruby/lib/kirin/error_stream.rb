# frozen_string_literal: true

require_relative "log"
require_relative "text_writing"

module Kirin
  # The stream `rack.errors`: writes complete lines to the log as they are. All requests share it.
  class ErrorStream
    include TextWriting

    # The most bytes of an unfinished line that it keeps.
    UNFINISHED_BYTES = 64 * 1024

    def initialize
      @unfinished = String.new
    end

    # Returns whether text is left that no line end has followed.
    def unfinished?
      !@unfinished.empty?
    end

    # Writes the complete lines and keeps the rest of the texts. Returns the number of their bytes.
    def write(*texts)
      texts.sum do |text|
        bytes = text.to_s.b
        add(bytes)
        bytes.bytesize
      end
    end

    # Writes a text as IO#printf does.
    def printf(*arguments)
      write(format(*arguments))
      nil
    end

    # Does nothing: complete lines have been written, and only complete lines are written.
    def flush
      self
    end

    # Does nothing: each line is written at once.
    def sync=(value)
      value
    end

    def sync
      true
    end

    def tty?
      false
    end
    alias isatty tty?

    # Does nothing: the next request needs the stream.
    def close; end

    def closed?
      false
    end

    # Writes the rest that no line end has followed, with a line end.
    def finish_line
      return if @unfinished.empty?

      send_bytes("#{@unfinished}\n")
      @unfinished.clear
    end

    private

    def add(bytes)
      @unfinished << bytes
      last = @unfinished.rindex("\n")
      send_bytes(@unfinished.slice!(0..last)) if last
      finish_line if @unfinished.bytesize > UNFINISHED_BYTES
    end

    def send_bytes(bytes)
      Log.write_or_lose(Log.stream, bytes) if Log.stream
    end
  end
end
