# frozen_string_literal: true

require_relative "log"
require_relative "response_error"

module Kirin
  # The head of a response: checks the status and the fields of an application, and makes bytes of
  # them. One object serves all responses of a worker.
  #
  # A value of a field is a string, or an array of strings for a name that comes several times (Rack
  # 3). Line feeds in a string separate such values, too (Rack 2). Other objects become strings.
  class ResponseHead
    # The most bytes of a head. The front accepts 64 KiB with the fields that the worker adds.
    MOST_BYTES = 63 * 1024

    # The most names that are kept after they have been checked.
    KNOWN_NAMES = 1000

    # Fields about the framing of the body, the future of connection and worker, and the file that
    # the front must send. An application may not set them.
    KINDS = {
      "transfer-encoding" => :coding,
      "connection" => :dropped,
      "keep-alive" => :dropped,
      "kirin-cleanup" => :dropped,
      "kirin-file" => :dropped,
      "content-length" => :length,
      "rack.hijack" => :hijack
    }.freeze
    # Such a name is a message to the server.
    MESSAGE = "rack."

    # The bytes that a name may have (RFC 9110 section 5.1). The front accepts no other name.
    NAME = /\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\z/n.freeze
    CONTROL_CHARACTER = /[\x00-\x08\x0a-\x1f\x7f]/.freeze
    LINE_END = /[\r\n\0]/.freeze
    # The length of 18 digits is more than any file has.
    LENGTH = /\A[0-9]{1,18}\z/.freeze
    STATUS = /\A[1-9][0-9][0-9]\z/.freeze

    # The status, a number.
    attr_reader :status
    # The Content-Length that the application says, or nil.
    attr_reader :length
    # The `rack.hijack` of the application, or nil.
    attr_reader :hijack

    def initialize
      # The start of the line, or a kind, by the name.
      @names = {}
      @first_lines = {}
    end

    # Whether the application has framed the body itself, in chunks.
    def coded?
      @is_coded
    end

    # Whether the response has a body, and the adapter frames it (RFC 9110 section 6.4.1).
    def plain?
      @is_plain
    end

    # Returns whether responses with this status have no body.
    def no_body?
      @status == 204 || @status == 304 || @status < 200
    end

    # Returns the bytes of a head without framing and without its end, as a new string. Raises
    # ResponseError if the head cannot be sent.
    def build(status, fields)
      head = +(@first_lines[status] || first_line(status))
      @status = status.to_i
      @length = @hijack = nil
      @is_coded = false
      @is_plain = !no_body?
      unless fields.respond_to?(:each)
        raise ResponseError, "the headers of the response are no hash, but #{fields.class}"
      end

      fields.each do |name, value|
        start = @names[name] || known(name)
        if start.instance_of?(String)
          if value.instance_of?(String) && value.ascii_only? && !value.match?(CONTROL_CHARACTER)
            head << start << value << "\r\n"
          else
            add(head, start, name, value)
          end
        elsif start != :dropped
          take(start, value)
        end
      end
      return head if head.bytesize <= MOST_BYTES

      raise ResponseError, "the response headers have more than #{MOST_BYTES} bytes"
    end

    private

    def first_line(status)
      unless (status.is_a?(Integer) || status.is_a?(String)) && status.to_s.match?(STATUS)
        raise ResponseError,
              "the status of the response is not a number of three digits: #{status.inspect}"
      end
      line = "HTTP/1.1 #{status}\r\n".b.freeze
      @first_lines[status] = line if status.is_a?(Integer)
      line
    end

    # Returns the start of a line or a kind, and keeps it. A field whose name no field can have is
    # left out, and logged.
    def known(name)
      unless name.is_a?(String)
        raise ResponseError, "the name of a response header is no string: #{name.inspect}"
      end

      bytes = name.b
      if bytes.match?(LINE_END)
        raise ResponseError, "line end or NUL in the name of a response header: #{name.inspect}"
      end

      @names.clear if @names.size >= KNOWN_NAMES
      @names[name] = kind(bytes) || (bytes.match?(NAME) ? "#{bytes}: ".freeze : leave_out(bytes))
    end

    def kind(bytes)
      small = bytes.downcase
      KINDS[small] || (:dropped if small.start_with?(MESSAGE))
    end

    def leave_out(name)
      Log.line("kirin: worker #{Process.pid}: the response header '#{Log.printable(name)}' is " \
               "left out: this is no name of a field")
      :dropped
    end

    def take(kind, value)
      case kind
      when :length
        text = value.to_s.b
        @length = text.to_i if text.match?(LENGTH)
      when :coding
        @is_coded = value.to_s.b.casecmp?("chunked")
        @is_plain &&= !@is_coded
      when :hijack
        unless value.nil? || value.respond_to?(:call)
          raise ResponseError, "rack.hijack of the response does not respond to `call`"
        end
        @hijack = value
        @is_plain = false if value
      end
    end

    def add(head, start, name, value)
      (value.is_a?(Array) ? value : [value]).each do |one|
        bytes = bytes_of(one.to_s, name)
        parts = bytes.include?("\n") ? bytes.split("\n", -1) : [bytes]
        parts.each { |part| add_line(head, start, name, part) }
      end
    end

    def bytes_of(text, name)
      return text.b if text.encoding.ascii_compatible?

      raise ResponseError, "the response header #{name.inspect} is in #{text.encoding}: encode " \
                           "it before it is sent"
    end

    # Control characters become spaces (RFC 9110 section 5.5). A line end would add lines, or a
    # complete response, so it is an error.
    def add_line(head, start, name, bytes)
      if bytes.match?(LINE_END)
        raise ResponseError, "line end or NUL in the response header #{name.inspect}"
      end

      head << start << bytes.gsub(CONTROL_CHARACTER, " ") << "\r\n"
    end
  end
end
