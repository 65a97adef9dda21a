# frozen_string_literal: true

require_relative "error"
require_relative "names"

module Kirin
  class Store
    # The stored form of a page: a media type and a body, or a complete response (docs/pages.md).
    module Pages
      MEDIA_TYPE = %r{\A[!-.0-~]+/[\t -~]+\z}n.freeze
      STATUS = /\A[1-9][0-9][0-9]\z/.freeze

      # Kirin writes the framing itself. It acts on its own fields only in a response of a worker.
      # Fields of Rack are for the server.
      LEFT_OUT = /\A(?:connection|content-length|keep-alive|kirin-\w+|rack\..*|
                     transfer-encoding)\z/xi.freeze

      module_function

      # Returns the value of an item that is a page with this media type.
      def page(media_type, body)
        media_type = Names.to_bytes(media_type, "a media type")
        unless MEDIA_TYPE.match?(media_type)
          raise InvalidArgument, "a page needs a media type, such as text/html; charset=UTF-8"
        end

        "#{media_type}\r\n".b + bytes(body)
      end

      # Returns the value of an item that is a complete response, as an application of Rack returns
      # it. A field with several values has an Array, or a String with a line for each.
      def response(status, headers, body)
        unless STATUS.match?(status.to_s)
          raise InvalidArgument, "status is no number of three digits: #{status.inspect}"
        end

        head = "HTTP/1.1 #{status}\r\n".b
        headers.each do |name, value|
          next if LEFT_OUT.match?(name.to_s)

          values = value.is_a?(Array) ? value : value.to_s.split("\n", -1)
          values.each { |one| head << field(name.to_s, one.to_s) }
        end
        head << "\r\n" << bytes(body)
      end

      def field(name, value)
        line = "#{name}: #{value}".b
        if line.match?(/[\r\n\0]/n)
          raise InvalidArgument, "line end or NUL in a response header"
        end

        line << "\r\n"
      end

      # A body is a String, or has `each`, as that of a response.
      def bytes(body)
        return Names.to_bytes(body, "a body") if body.is_a?(String)
        raise InvalidArgument, "a body is a String or has each" unless body.respond_to?(:each)

        bytes = "".b
        body.each { |part| bytes << Names.to_bytes(part, "a part of a body") }
        bytes
      end
    end
  end
end
