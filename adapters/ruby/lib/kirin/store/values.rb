# frozen_string_literal: true

require "json"
require_relative "error"

module Kirin
  class Store
    # How Ruby's values are stored. The flags of an item say how to read it again.
    #
    # | value                         | flags | stored as                         |
    # |-------------------------------|-------|-----------------------------------|
    # | String of text                | 4     | UTF-8                             |
    # | String of bytes               | 0     | the bytes                         |
    # | Integer                       | 8     | digits, so that `incr` counts     |
    # | others                        | 8     | JSON                              |
    # | others, with a serializer     | 64    | what the serializer returns       |
    #
    # The clients for Python and Perl use 4 and 8 as well. Python uses 32 for its serializers: no
    # program may load what another language has serialized. Items with other flags are bytes.
    class Values
      FLAG_BYTES = 0
      FLAG_TEXT = 4
      FLAG_JSON = 8
      FLAG_SERIALIZED = 64

      # Levels of arrays and hashes in each other. This is the default of JSON.
      MOST_LEVELS = 100

      # Returns a copy of a value as JSON gives it back: keys and symbols are Strings.
      #
      # Raises `InvalidArgument` for an object that JSON would store as the text of its `to_s`.
      def self.plain(value, levels = MOST_LEVELS)
        case value
        when nil, true, false, Integer then value
        when Float
          raise InvalidArgument, "JSON has no #{value}" unless value.finite?

          value
        when String then text(value)
        when Symbol then text(value.name)
        when Array
          check(levels)
          value.map { |element| plain(element, levels - 1) }
        when Hash
          check(levels)
          value.to_h { |name, member| [key(name), plain(member, levels - 1)] }
        else raise InvalidArgument, "JSON has no objects of #{value.class}"
        end
      end

      def self.check(levels)
        raise InvalidArgument, "it has more than #{MOST_LEVELS} levels" if levels.zero?
      end

      def self.key(name)
        case name
        when String then text(name)
        when Symbol then text(name.name)
        when Integer then name.to_s
        else raise InvalidArgument, "a key in JSON is no object of #{name.class}"
        end
      end

      # Returns a String in UTF-8. Bytes that are no text cannot be in JSON.
      def self.text(string)
        string = String.new(string)
        case string.encoding
        when Encoding::UTF_8 then nil
        when Encoding::US_ASCII, Encoding::BINARY then string.force_encoding(Encoding::UTF_8)
        else string.encode!(Encoding::UTF_8)
        end
        raise InvalidArgument, "JSON has no bytes, only text" unless string.valid_encoding?

        string
      rescue EncodingError => e
        raise InvalidArgument, e.message
      end
      private_class_method :check, :key, :text

      # `serializer` is an object with `dump` and `load`, or nil for JSON.
      def initialize(serializer = nil)
        unless serializer.nil? || (serializer.respond_to?(:dump) && serializer.respond_to?(:load))
          raise ArgumentError, "a serializer has dump and load, as Marshal and JSON"
        end

        @serializer = serializer
      end

      # Returns bytes and flags. Raises `InvalidArgument` if the value cannot be stored.
      def encode(value)
        return string(value) if value.instance_of?(String)
        return [value.to_s, FLAG_JSON] if value.is_a?(Integer)
        # A subclass of String, for example, comes back as the same class.
        return [@serializer.dump(value).b, FLAG_SERIALIZED] if @serializer
        return string(value) if value.is_a?(String)

        [JSON.generate(Values.plain(value)).b, FLAG_JSON]
      rescue StandardError => e
        raise InvalidArgument, "the value cannot be stored: #{one_line(e)}"
      end

      # Returns the value of an item. Raises `Error` if it cannot be read.
      def decode(data, flags)
        case flags
        when FLAG_TEXT then utf8(data)
        when FLAG_JSON then JSON.parse(utf8(data), max_nesting: MOST_LEVELS)
        when FLAG_SERIALIZED then @serializer ? @serializer.load(data) : data
        else data
        end
      rescue StandardError, SystemStackError => e
        raise Error, "the value cannot be read: #{one_line(e)}"
      end

      private

      def string(value)
        case value.encoding
        when Encoding::BINARY then return [value, FLAG_BYTES]
        when Encoding::UTF_8, Encoding::US_ASCII then nil
        else value = value.encode(Encoding::UTF_8)
        end
        # Files are often read as text, whatever they are.
        [value.b, value.valid_encoding? ? FLAG_TEXT : FLAG_BYTES]
      end

      def utf8(data)
        text = String.new(data, encoding: Encoding::UTF_8)
        raise Error, "it is no UTF-8" unless text.valid_encoding?

        text
      end

      def one_line(error)
        text = error.message.scrub.split.join(" ")
        text.empty? ? error.class.name : text[0, 200]
      end
    end
  end
end
