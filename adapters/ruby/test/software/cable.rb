# frozen_string_literal: true

require "json"
require_relative "../waiting"

# A client of Action Cable: a WebSocket with JSON. Messages have less than 64 KiB.
class Cable
  FIELDS = {
    "Upgrade" => "websocket", "Sec-WebSocket-Version" => "13",
    "Sec-WebSocket-Key" => "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol" => "actioncable-v1-json", "Origin" => "http://site.example"
  }.freeze
  TEXT = 1
  CLOSE = 8
  LAST_FRAME = 0x80
  MASKED = 0x80
  # A mask of zeros changes nothing.
  MASK = "\0\0\0\0"

  # The response to the request for a WebSocket.
  attr_reader :answer

  # Connects for a visitor with the visitor's cookies. The caller closes it.
  def initialize(visitor, fields = {})
    @answer, @socket = visitor.upgrade("/cable", { **FIELDS, **fields })
  end

  # Sends a command about a channel, with data for its action.
  def command(name, channel, data = {})
    command = { command: name, identifier: JSON.generate(channel), data: JSON.generate(data) }
    send_frame(TEXT, JSON.generate(command))
  end

  # Returns the next message, or nil if the server has closed the WebSocket.
  def receive
    loop do
      @socket.wait_readable(Waiting::SECONDS) or raise "the WebSocket has no message"
      kind, length = @socket.read(2)&.unpack("CC")
      return if kind.nil? || kind == LAST_FRAME | CLOSE

      length = @socket.read(2).unpack1("n") if length == 126
      message = JSON.parse(@socket.read(length))
      return message unless message["type"] == "ping"
    end
  end

  # Ends the WebSocket as a browser does, and waits for the answer.
  def close
    send_frame(CLOSE, [1000].pack("n"))
    nil while receive
  ensure
    @socket.close
  end

  private

  def send_frame(kind, bytes)
    size = bytes.bytesize
    length = size < 126 ? [MASKED | size].pack("C") : [MASKED | 126, size].pack("Cn")
    @socket.write([LAST_FRAME | kind].pack("C"), length, MASK, bytes)
  end
end
