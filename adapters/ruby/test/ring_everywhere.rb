# frozen_string_literal: true

# Has all tests of this process talk to workers through the ring.
require_relative "ring_relay"

FrontConnection.prepend(RingRelay)
