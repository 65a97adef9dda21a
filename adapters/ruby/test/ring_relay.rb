# frozen_string_literal: true

require_relative "front_connection"
require_relative "ring_tool"

# Puts a relay between a test and its worker: the worker gets the requests through a ring, and the
# test sees the bytes that it would see without.
#
# It is for single connections (`extend`), and for all of a program: ruby -r./test/ring_everywhere.
module RingRelay
  def connect
    disconnect
    @connection, theirs = RingTool.socket_pair
    Process.detach(spawn(RingTool.build("relay"), @path, in: theirs))
    theirs.close
    @unread = String.new
    @greeting = read_until("\n")
  end
end
