# frozen_string_literal: true

require_relative "text_writing"
require_relative "threads"

module Kirin
  # What an application writes the body of its response to: the argument of a streaming body (Rack
  # 3), and of `rack.hijack` in the fields of a response (partial hijacking). Each write goes to the
  # client at once. Nothing can be read from it: the request is complete.
  class ResponseStream
    include TextWriting

    # Seconds between two looks whether there are other threads.
    TICK_SECONDS = 1.0

    def initialize(response)
      @response = response
      @is_closed = false
    end

    # Sends texts. Returns the number of their bytes. Raises Errno::EPIPE if the client has
    # disconnected, and IOError if the stream is closed.
    def write(*texts)
      raise IOError, "closed stream" if @is_closed

      texts.sum { |text| @response.write(text.to_s) }
    end

    def syswrite(text)
      write(text)
    end

    def write_nonblock(text, **)
      write(text)
    end

    # Sends the head of the response, if nothing has been sent.
    def flush
      raise IOError, "closed stream" if @is_closed

      @response.flush
      self
    end

    # Returns the end of the input, as IO#read does.
    def read(length = nil, buffer = nil)
      buffer&.clear
      length.to_i.positive? ? nil : (buffer || +"")
    end

    def readpartial(*)
      raise EOFError, "end of file reached"
    end

    def read_nonblock(_length, _buffer = nil, exception: true)
      exception ? raise(EOFError, "end of file reached") : nil
    end

    def each
      self
    end

    # Ends the response. It may be called twice.
    def close
      @is_closed = true
      Thread.main.wakeup if Thread.current != Thread.main
      nil
    end
    alias close_write close

    # Does nothing: there is no input.
    def close_read; end

    def closed?
      @is_closed
    end

    def sync
      true
    end

    def sync=(value)
      value
    end

    # Waits until another thread has closed the stream. Without other threads nobody can.
    def wait_until_closed
      sleep(TICK_SECONDS) while !@is_closed && !Threads.of_application.empty?
    end
  end
end
