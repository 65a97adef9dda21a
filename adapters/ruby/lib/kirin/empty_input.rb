# frozen_string_literal: true

require "stringio"

module Kirin
  # The `rack.input` that all requests without a body share. No request can close, fill or change
  # it.
  class EmptyInput < StringIO
    def initialize
      super(String.new.freeze)
      binmode
    end

    # These do nothing.
    def close; end

    def close_read; end

    def close_write; end

    def set_encoding(*)
      self
    end

    def set_encoding_by_bom; end

    def reopen(*)
      raise IOError, "rack.input cannot be opened again"
    end

    def string=(_)
      raise IOError, "rack.input cannot be written"
    end
  end
end
