# frozen_string_literal: true

require_relative "file_handed_back"
require_relative "log"
require_relative "response_error"
require_relative "response_stream"
require_relative "socket_transport"

module Kirin
  # A response whose body is sent in one of the less usual ways: in parts, by a stream, as a file,
  # or not at all. The worker itself sends an array.
  class Response
    # The bytes that end a head.
    LINE_END = "\r\n"

    # The bytes that are read at once of a file that the worker sends.
    FILE_BYTES = 64 * 1024

    # `head` has the bytes without framing, and `fields` is the ResponseHead that made them.
    # `is_head` says that the method is HEAD.
    def initialize(worker, head, fields, is_head)
      @worker = worker
      @transport = worker.transport
      @head = head
      @status = fields.status
      @length = fields.length
      @is_coded = fields.coded?
      @hijack = fields.hijack
      @has_no_body = is_head || fields.no_body?
      @is_begun = @is_over = @is_too_long = false
    end

    # Whether bytes may have been sent, so that no other response can replace this one.
    def begun?
      @is_begun
    end

    # Whether the connection speaks another protocol now.
    def switched?
      @framing == :switched
    end

    # Sends the body that the application has returned, and closes it.
    def send_body(body)
      return switch(body) if @status == 101
      raise ResponseError, "#{@status} is no answer to this request" if @status < 200

      if @hijack
        stream(@hijack, waits: true)
      elsif (parts = array(body))
        close(body)
        return whole(parts)
      elsif hand_back(body)
        nil
      elsif body.respond_to?(:each)
        @has_no_body ? whole([]) : each(body)
      elsif body.respond_to?(:call)
        @has_no_body ? whole([]) : stream(body)
      else
        raise ResponseError, "the body of the response responds neither to `each` nor to `call`: " \
                             "it is #{body.class}"
      end
      close(body)
    rescue Exception
      close(body)
      raise
    end

    # Sends a complete body.
    def whole(parts)
      size = parts.sum { |part| checked(part).bytesize }
      if @has_no_body
        # This is the length that the body of a GET would have. An empty body stands for one that
        # was left out.
        length = @length || (size if size.positive?)
        @head << "Content-Length: #{length}\r\n" if length && @status != 204
        parts = []
      elsif @is_coded
        @head << "Transfer-Encoding: chunked\r\n"
      else
        # The application's length may be wrong. This one is correct.
        @head << "Content-Length: #{size}\r\n"
      end
      deliver_whole(*parts)
    end

    # Sends a part of the body, and the head if this is the first part. Returns the number of its
    # bytes. Raises ClientGone.
    def write(part)
      raise IOError, "the response has ended" if @is_over
      return 0 if checked(part).empty?

      begin_body
      case @framing
      when :chunked then deliver("#{part.bytesize.to_s(16)}\r\n", part, LINE_END)
      when :length then deliver(cut(part))
      when :none then nil
      else deliver(part)
      end
      part.bytesize
    end

    # Sends the head, if nothing has been sent.
    def flush
      raise IOError, "the response has ended" if @is_over

      begin_body
    end

    # Ends the body. It may be called twice.
    def finish
      return if @is_over

      unless @is_begun
        raise too_short(@length) if @length.to_i.positive? && !@has_no_body

        return whole([])
      end
      raise too_short(@left) if @framing == :length && @left.positive?

      deliver("0\r\n\r\n") if @framing == :chunked
      @is_over = true
    end

    private

    def array(body)
      return body if body.instance_of?(Array)

      # A file may have both.
      body.to_ary if body.respond_to?(:to_ary) && !body.respond_to?(:to_path)
    end

    def each(body)
      parts(body) do |part|
        write(part)
        break if @is_too_long
      end
      finish
    end

    # Yields the parts of a body. `each` of a file would give its lines.
    def parts(body, &block)
      return body.each(&block) unless body.instance_of?(File) && body.internal_encoding.nil?

      left = body.size - body.pos
      # With a length the front can read a small file completely, and free this worker. A file of
      # /proc has none.
      @length ||= left if left.positive? && body.stat.file?
      while (part = body.read(FILE_BYTES))
        yield part
      end
    end

    # `waits` says that the stream may be used by other threads, until it is closed.
    def stream(body, waits: false)
      stream = ResponseStream.new(self)
      body.call(stream)
      stream.wait_until_closed if waits
      finish
    end

    # Sends the head of a 101. From then on the application speaks its own protocol.
    def switch(body)
      hand_over = @worker.hand_over
      user = @hijack || (body if body.respond_to?(:call) && !body.respond_to?(:each))
      if hand_over.nil? || (user.nil? && array(body)) || !(user || body.respond_to?(:each))
        raise ResponseError, "101 is no answer to this request"
      end

      socket = hand_over.socket
      @framing = :switched
      deliver(@head << LINE_END)
      if user
        user.call(socket)
        hand_over.wait_until_closed
      else
        body.each { |part| deliver(checked(part)) }
      end
    ensure
      close(body)
    end

    # Lets the front send a file. Returns whether it will.
    def hand_back(body)
      return false if @status == 204 || @status == 304
      return false unless body.respond_to?(:to_path) && @worker.may_hand_back?

      value = FileHandedBack.field_value(body, @length)
      return false if value.nil?

      @head << "Kirin-File: " << value << "\r\nContent-Length: 0\r\n"
      deliver_whole
    end

    def begin_body
      return if @is_begun

      @framing = framing
      case @framing
      when :length then @head << "Content-Length: #{@left = @length}\r\n"
      when :chunked, :coded then @head << "Transfer-Encoding: chunked\r\n"
      else @head << "Content-Length: #{@length}\r\n" if @length && @status != 204
      end
      deliver(end_of_head)
    end

    def framing
      if @has_no_body then :none
      elsif @is_coded then :coded
      elsif @length then :length
      else :chunked
      end
    end

    def end_of_head
      @head << @worker.last_fields << LINE_END
    end

    def cut(part)
      if part.bytesize > @left
        @is_too_long = true
        Log.line("kirin: worker #{Process.pid}: the response body is longer than its " \
                 "Content-Length; it is cut")
        part = part.byteslice(0, @left)
      end
      @left -= part.bytesize
      part
    end

    def too_short(missing)
      ResponseError.new("the response body is #{missing} bytes shorter than its Content-Length")
    end

    def checked(part)
      return part if part.is_a?(String)

      raise ResponseError, "a part of the response body is no string, but #{part.class}"
    end

    # Sends the head and a complete body.
    def deliver_whole(*parts)
      bytes = end_of_head
      @is_begun = true
      @transport.write_whole(bytes, *parts, has_work: @worker.announced_work?)
      @is_over = true
    end

    # A part of the bytes may be sent even if this fails.
    def deliver(*bytes)
      @is_begun = true
      @transport.write(*bytes)
    end

    # The client has its response, even if this fails.
    def close(body)
      return if @is_closed

      @is_closed = true
      @worker.close_body(body)
    end
  end
end
