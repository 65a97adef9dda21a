# frozen_string_literal: true

require "socket"
require_relative "answer"
require_relative "../waiting"

# A client with cookies and a connection that stays open, as a browser has them.
class Visitor
  # All servers are asked for the same site, so that absolute links are the same.
  SITE = "site.example"

  # The server has closed the connection before the end of a response.
  class Cut < StandardError; end

  attr_reader :cookies, :last, :connections

  def initialize(port)
    @port = port
    @cookies = {}
    @connections = 0
  end

  # Sends a request and returns the response. It follows no redirects.
  def request(method, target, content = nil, fields = {})
    connect unless @socket
    send_request(method, target, content, fields)
    @last = read_answer(method)
    @last.all("set-cookie").each { |line| take_cookie(line) }
    @last
  end

  # Sends a request for a WebSocket, and returns the response and the connection, which belongs to
  # the caller now.
  def upgrade(target, fields)
    connect unless @socket
    send_request("GET", target, nil, { "Connection" => "Upgrade", **fields })
    answer = read_answer("GET")
    socket = @socket
    @socket = nil
    [answer, socket]
  end

  def close
    @socket&.close
    @socket = nil
  end

  private

  def connect
    @socket = Socket.tcp("127.0.0.1", @port)
    # Each piece is a packet of its own.
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    @socket.sync = true
    @connections += 1
  end

  def send_request(method, target, content, fields)
    lines = { "Host" => SITE, "User-Agent" => "visitor/1", **framing(content), **fields }
    lines["Cookie"] = @cookies.map { |pair| pair.join("=") }.join("; ") unless @cookies.empty?
    lines.compact!
    head = lines.map { |name, value| "#{name}: #{value}\r\n" }.join
    @socket.write("#{method} #{target} HTTP/1.1\r\n#{head}\r\n")
    return @socket.write(content.bytes) if content && !content.parts

    content&.parts&.each { |part| @socket.write("#{part.bytesize.to_s(16)}\r\n", part, "\r\n") }
    @socket.write("0\r\n\r\n") if content
  end

  def framing(content)
    return {} unless content

    type = { "Content-Type" => content.media_type }
    return { **type, "Transfer-Encoding" => "chunked" } if content.parts

    { **type, "Content-Length" => content.bytes.bytesize }
  end

  def read_answer(method)
    hints = []
    while (status = line[%r{\AHTTP/1\.1 (\d\d\d)}, 1].to_i) == 103
      hints += read_fields
    end
    answer = Answer.new(status, read_fields, +"".b, hints)
    read_body(answer) unless method == "HEAD" || [101, 204, 304].include?(status)
    close if answer.field("connection")&.casecmp?("close")
    answer
  end

  def read_fields
    fields = []
    until (field = line).empty?
      name, _, value = field.partition(":")
      fields << [name, value.strip]
    end
    fields
  end

  def read_body(answer)
    if answer.field("transfer-encoding")&.casecmp?("chunked")
      read_chunks(answer.body)
    elsif (length = answer.field("content-length"))
      answer.body << exactly(length.to_i)
    else
      answer.body << @socket.read
      close
    end
  end

  def read_chunks(body)
    until (size = (line[/\A\h+/] || raise(Cut, "a chunk is missing")).to_i(16)).zero?
      body << exactly(size)
      line
    end
    line
  end

  # Returns the next line of the response without its end.
  def line
    wait
    text = @socket.gets("\r\n") or raise(Cut, "the connection is closed")
    text.chomp("\r\n")
  end

  def exactly(size)
    bytes = @socket.read(size).to_s
    bytes.bytesize == size ? bytes : raise(Cut, "#{bytes.bytesize} of #{size} bytes came")
  end

  def wait
    @socket.wait_readable(Waiting::SECONDS) or raise("the server does not answer")
  end

  def take_cookie(text)
    name, value = text[/\A[^;]*/].split("=", 2)
    if text.match?(/expires=Thu, 01 Jan 1970|max-age=0/i)
      @cookies.delete(name)
    else
      @cookies[name] = value.to_s
    end
  end
end
