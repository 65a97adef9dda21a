# frozen_string_literal: true

require_relative "ring_tool"

# This process as a worker, with a front that has one slot.
#
#   slot = RingSlot.new({})
#   slot.put(request)
#   environment = slot.take
#   slot.ring.answer(200, {}, ["hello"])
#   phase, bytes = slot.report
class RingSlot
  # What the front has read in the slot.
  ANSWERED = 2
  OVER_CONNECTION = 4
  CLEANS_UP = 5
  CLEANED_UP = 3

  attr_reader :ring, :connection

  # `constant` is in all environments. The sizes are those of the slot in bytes.
  def initialize(constant, request_bytes: 16 * 1024, answer_bytes: 48 * 1024)
    @connection, theirs = RingTool.socket_pair
    @commands, their_commands = RingTool.socket_pair
    @pid = spawn(RingTool.build("slot"), request_bytes.to_s, answer_bytes.to_s,
                 in: theirs, out: their_commands)
    [theirs, their_commands].each(&:close)
    @ring = Kirin::Ring.attach(@connection, Process.ppid, constant) { false }
  end

  # Puts a request into the slot.
  def put(request)
    @commands.write([request.bytesize].pack("L"), request)
  end

  # Waits for the request. Ruby's own interrupts end the wait of a ring as signals do.
  def take
    taken = nil
    taken = @ring.take while taken.nil?
    taken
  end

  # Waits for a report. Returns the phase of the slot after it, and the answer.
  def report
    phase, length = @commands.read(8).unpack("LL")
    [phase, length.zero? ? "".b : @commands.read(length)]
  end

  def close
    @ring.detach
    [@connection, @commands].each(&:close)
    Process.kill(:TERM, @pid)
    Process.wait(@pid)
  end
end
