# frozen_string_literal: true

require "rack"

module Memo
  # A response: its status as a number, its headers as a Hash, its body as a String.
  class Response
    # No script, only our own styles, nothing from other sites, no framing. The pages repeat this in
    # a meta element, because pages from the store come without the application's headers.
    CONTENT_SECURITY_POLICY =
      "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'"
    # Rack 3 has only names in lower case.
    SAFETY = {
      "x-content-type-options" => "nosniff",
      "x-frame-options" => "DENY",
      "referrer-policy" => "same-origin",
      "content-security-policy" => "#{CONTENT_SECURITY_POLICY}; frame-ancestors 'none'"
    }.freeze

    class << self
      # Returns a page for all visitors who are not signed in.
      #
      # It may change with the next memo, so browsers must request it again each time.
      def public_page(html)
        response = new(200, "text/html; charset=UTF-8", "no-cache", html)
        response.headers["vary"] = "Cookie"
        response
      end

      # Returns a page for one visitor.
      def personal_page(html, status = 200, cookies = [])
        new(status, "text/html; charset=UTF-8", "private, no-store", html, cookies)
      end

      # Returns a redirection to a page of this site.
      def see_other(path, cookies = [])
        response = new(
          303, "text/plain; charset=UTF-8", "private, no-store", "See #{path}\n", cookies
        )
        response.headers["location"] = path
        response
      end
    end

    attr_reader :headers

    def initialize(status, media_type, cache_control, body, cookies = [])
      @status = status
      @body = body
      @headers = {
        "content-type" => media_type,
        "content-length" => body.bytesize.to_s,
        "cache-control" => cache_control,
        **SAFETY
      }
      @headers["set-cookie"] = several(cookies) unless cookies.empty?
    end

    # Returns what an application of Rack returns. A response to HEAD has no body.
    def to_rack(is_head:)
      [@status, @headers, is_head ? [] : [@body]]
    end

    private

    # Returns the values of a field as Rack has them: an Array in Rack 3, lines in Rack 2.
    def several(values)
      Rack.release.to_i < 3 ? values.join("\n") : values
    end
  end
end
