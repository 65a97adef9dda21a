# frozen_string_literal: true

require_relative "log"
require_relative "socket_transport"

module Kirin
  # The head of a request: `LENGTH:NAME NUL VALUE NUL … NAME NUL VALUE NUL,`.
  module RequestHead
    # The longest head in bytes. The front's own limit is lower.
    MOST_BYTES = 256 * 1024

    # The most characters of the decimal length of a head, and its colon.
    LENGTH_BYTES = 8
    LENGTH = /\A[1-9][0-9]{0,6}\z/.freeze

    COMMA = ",".ord

    # More words than this do not fit onto Ruby's stack as arguments of one call.
    MOST_ARGUMENTS = 1000

    class << self
      # Returns the names and values of a request that is one complete head, as nearly all are, or
      # nil.
      def of_whole(data)
        colon = data.index(":")
        comma = colon.to_i + 1 + data.to_i
        environment(data) if comma + 1 == data.bytesize && data.getbyte(comma) == COMMA
      end

      # Returns the names and values of another request, and the bytes that came behind the head.
      # `data` is what came first. Raises FrontGone.
      def read(data, transport)
        comma = complete(data, transport)
        [environment(data.byteslice(0, comma + 1)), data.byteslice(comma + 1..)]
      end

      private

      def environment(head)
        words = head.split("\0")
        refuse unless words.pop == "," && words.size.even? && words[0].end_with?(":CONTENT_LENGTH")
        words[0] = "CONTENT_LENGTH"
        words.size > MOST_ARGUMENTS ? words.each_slice(2).to_h : Hash[*words]
      end

      # Reads until the head is complete. Returns the index of the comma that ends it.
      def complete(data, transport)
        loop do
          comma = comma_of(data)
          return comma if comma

          data << transport.receive_rest
        end
      end

      # Returns the index of the comma that ends a head, or nil if bytes are missing.
      def comma_of(data)
        colon = data.byteslice(0, LENGTH_BYTES).index(":")
        digits = data.byteslice(0, colon || LENGTH_BYTES)
        refuse unless digits.match?(LENGTH) && digits.to_i <= MOST_BYTES
        return if colon.nil?

        comma = colon + 1 + digits.to_i
        return if data.bytesize <= comma

        refuse unless data.getbyte(comma) == COMMA
        comma
      end

      def refuse
        Log.line("kirin: worker #{Process.pid}: the front has sent something that is no request")
        raise FrontGone
      end
    end
  end
end
