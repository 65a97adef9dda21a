# frozen_string_literal: true

module Kirin
  # The path of a request as applications of Rack expect it: percent-encoded.
  #
  # Puma, Unicorn and Thin give the path as the client has sent it, and Rails, Sinatra and
  # Rack::Files decode it. The front gives the decoded path, which they would decode twice.
  module RackPath
    # The bytes that must be encoded in a path (RFC 3986 section 3.3).
    UNSAFE = %r{[^A-Za-z0-9\-._~!$&'()*+,;=:@/]}n.freeze
    ENCODED = /%(\h\h)/n.freeze

    class << self
      # Encodes SCRIPT_NAME and PATH_INFO of an environment from the front.
      def encode(environment)
        target = environment["REQUEST_URI"]
        path = environment["PATH_INFO"]
        script = environment["SCRIPT_NAME"]
        return unless target.include?("%") || path.match?(UNSAFE) || script.match?(UNSAFE)

        sent = target[/\A[^?]*/n]
        if decoded(sent) == script + path
          # What the client has encoded in its own way stays so, `%2F` for example.
          environment["SCRIPT_NAME"] = start = sent[/\A(?:%\h\h|.){#{script.bytesize}}/mn]
          environment["PATH_INFO"] = sent.byteslice(start.bytesize..)
        else
          # A route has rewritten the path.
          environment["SCRIPT_NAME"] = encoded(script)
          environment["PATH_INFO"] = encoded(path)
        end
      end

      private

      def decoded(path)
        path.gsub(ENCODED) { Regexp.last_match(1).to_i(16).chr }
      end

      def encoded(path)
        path.gsub(UNSAFE) { |byte| format("%%%02X", byte.ord) }
      end
    end
  end
end
