# frozen_string_literal: true

require "cgi"

module Memo
  # Text that is HTML already. Templates escape all other text.
  class Html < String
    # Returns a value as HTML.
    def self.of(value)
      value.is_a?(Html) ? value : CGI.escapeHTML(value.to_s)
    end
  end
end
