# frozen_string_literal: true

require_relative "error"

module Kirin
  class Store
    # Keys, tags and times to live, as they are sent. Nothing is sent that fails a check here.
    module Names
      KEY_BYTES = 250
      TAG_BYTES = 64
      TAGS = 16

      # memcached reads a larger time to live as a point in time (doc/protocol.txt).
      RELATIVE_SECONDS = 60 * 60 * 24 * 30

      # The last point in time that every memcached can read, in January 2038.
      LAST_SECOND = (2**31) - 1

      # The longest key before it is written in base64, which has at most KEY_BYTES bytes.
      BASE64_KEY_BYTES = 186

      BAD_IN_KEY = /[\x00-\x20\x7f]/n.freeze
      BAD_IN_TAG = /[\x00-\x20,\x7f]/n.freeze
      TARGET = %r{\A(?:[^/:]+:)?/}n.freeze

      module_function

      # Returns the bytes of a String or Symbol. Text is sent as UTF-8.
      def to_bytes(text, what)
        text = text.name if text.is_a?(Symbol)
        unless text.is_a?(String)
          raise InvalidArgument, "#{what} is a String, not an object of #{text.class}"
        end

        case text.encoding
        when Encoding::UTF_8, Encoding::US_ASCII, Encoding::BINARY then text.b
        else text.encode(Encoding::UTF_8).b
        end
      rescue EncodingError => e
        raise InvalidArgument, "#{what} cannot be encoded as UTF-8: #{e.message}"
      end

      # Returns the name of an item in the store. `prefix` has the site and the namespace.
      def key_name(prefix, key)
        name = prefix + to_bytes(key, "a key")
        checked(name, KEY_BYTES, BAD_IN_KEY, "a key", "spaces and control characters")
      end

      # Returns the name of a tag in the store. `prefix` has the site.
      def tag_name(prefix, tag)
        tag = to_bytes(tag, "a tag")
        bad_words = "spaces, commas and control characters"
        prefix + checked(tag, TAG_BYTES, BAD_IN_TAG, "a tag", bad_words)
      end

      # Returns the bytes, if there are not too many and none is bad.
      def checked(bytes, most, bad, what, bad_words)
        unless bytes.bytesize.between?(1, most)
          raise InvalidArgument, "#{what} has 1 to #{most} bytes"
        end
        raise InvalidArgument, "#{what} has no #{bad_words}" if bad.match?(bytes)

        bytes
      end

      # Returns the names of all tags of an item.
      def tag_names(prefix, tags)
        names = Array(tags).map { |tag| tag_name(prefix, tag) }
        raise InvalidArgument, "more than #{TAGS} tags" if names.size > TAGS

        names
      end

      # Returns the part of `md` that purges the cached responses for a target (docs/cache.md).
      #
      # Returns nil if the name is no target. A target that is too long for its own tag also
      # includes the targets that start as it does.
      def cached_name(name, is_prefix)
        return unless TARGET.match?(name)

        tag = "\0c".b + name
        kind = is_prefix || tag.bytesize > BASE64_KEY_BYTES ? " b Pprefix" : " b Ptag"
        [tag.byteslice(0, BASE64_KEY_BYTES)].pack("m0") + kind
      end

      # Returns a time to live in the form of the protocol. nil and 0 mean that there is no end.
      def expiry(ttl)
        return 0 if ttl.nil?
        # A duration of ActiveSupport calls itself a Numeric, too.
        unless ttl.is_a?(Numeric) && ttl.real? && ttl.to_f.finite?
          raise InvalidArgument, "a time to live is a number of seconds: #{ttl.inspect}"
        end
        return -1 if ttl.negative?

        # It is rounded up, because 0 would mean that the item does not expire.
        seconds = ttl.to_f.ceil
        return seconds if seconds <= RELATIVE_SECONDS

        finish = Time.now.to_i + seconds
        # A later end would be an error, or a time that is over. Such an item does not expire.
        finish <= LAST_SECOND ? finish : 0
      end
    end
  end
end
