# frozen_string_literal: true

require "socket"
require_relative "waiting"

# A connection to a worker, as a front opens it.
class FrontConnection
  DEFAULTS = {
    "SCGI" => "1",
    "REQUEST_METHOD" => "GET",
    "REQUEST_URI" => "/",
    "SCRIPT_NAME" => "",
    "PATH_INFO" => "/",
    "QUERY_STRING" => "",
    "SERVER_PROTOCOL" => "HTTP/1.1",
    "SERVER_NAME" => "localhost",
    "SERVER_PORT" => "80",
    "REMOTE_ADDR" => "127.0.0.1",
    "REMOTE_PORT" => "1",
    "HTTP_HOST" => "localhost"
  }.freeze

  # The worker has closed the connection within a response.
  Cut = Class.new(StandardError)

  # A response as a front reads it. `fields` is a list of names and values.
  Response = Struct.new(:status, :fields, :body, :chunks, :is_cut) do
    # Returns the value of the field with a name in small letters.
    def [](name)
      fields.assoc(name)&.last
    end

    def values(name)
      fields.select { |one, _| one == name }.map(&:last)
    end
  end

  attr_reader :connection, :greeting

  # Returns the bytes of a request.
  def self.encode(values, body = "")
    head = values.flatten.map { |word| "#{word}\0".b }.join
    "#{head.bytesize}:#{head},".b << body.b
  end

  def initialize(path)
    @path = path
  end

  # Opens a connection. Returns the greeting.
  def connect
    disconnect
    @connection = UNIXSocket.new(@path)
    @unread = String.new
    @greeting = read_until("\n")
  end

  def disconnect
    @connection&.close
    @connection = nil
  end

  # Leaves the connection open, but opens another one for the next request.
  def keep
    kept = @connection
    @connection = nil
    kept
  end

  # Sends a request with these names and values. `file` has the body in place of `body`.
  def send_request(values = {}, body: "", file: nil)
    connect if @connection.nil?
    length = file ? file.size : body.bytesize
    pairs = [["CONTENT_LENGTH", length.to_s], *DEFAULTS.merge(values)]
    data = self.class.encode(pairs, body)
    return @connection.write(data) if file.nil?

    @connection.sendmsg(data, 0, nil, Socket::AncillaryData.unix_rights(file))
  end

  # Reads a response. Raises Cut if there is none.
  def response(method = "GET")
    first, *lines = read_until("\r\n\r\n").split("\r\n")
    raise "status line: #{first}" unless first =~ %r{\AHTTP/1.1 ([0-9]{3})\z}

    fields = lines.map do |line|
      name, value = line.split(": ", 2)
      [name.downcase, value]
    end
    response = Response.new(Regexp.last_match(1).to_i, fields, String.new, 0, false)
    has_body = method != "HEAD" && response.status >= 200 && ![204, 304].include?(response.status)
    read_body(response) if has_body
    response
  end

  def request(values = {}, **body)
    send_request(values, **body)
    response(values.fetch("REQUEST_METHOD", "GET"))
  end

  def get(path, values = {})
    request({ "PATH_INFO" => path, "REQUEST_URI" => path, **values })
  end

  def read_until(ending)
    receive until @unread.include?(ending)
    part, @unread = @unread.split(ending, 2)
    @unread ||= String.new
    part
  end

  def read_bytes(count)
    receive while @unread.bytesize < count
    @unread.slice!(0, count)
  end

  # Waits for the end of the connection. Returns the bytes that come before it.
  def rest
    loop { receive }
  rescue Cut
    @unread
  end

  private

  def read_body(response)
    if response["transfer-encoding"] == "chunked"
      read_chunks(response)
    elsif response["content-length"]
      response.body = read_bytes(response["content-length"].to_i)
    else
      raise "the response has no framing: #{response}"
    end
    # A cleanup ends with a line end.
    return if @unread.empty? || (response["kirin-cleanup"] && @unread == "\n")

    raise "bytes after the response: #{@unread.inspect}"
  rescue Cut
    response.is_cut = true
    response.body << @unread
    @unread = String.new
  end

  def read_chunks(response)
    loop do
      data = read_bytes(read_until("\r\n").to_i(16) + 2)
      break if data == "\r\n"

      response.body << data.delete_suffix("\r\n")
      response.chunks += 1
    end
  end

  def receive
    raise "no answer" unless @connection.wait_readable(Waiting::SECONDS)

    @unread << @connection.readpartial(1 << 20)
  rescue EOFError, Errno::ECONNRESET
    raise Cut
  end
end
