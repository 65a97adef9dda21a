# frozen_string_literal: true

require "openssl"

module Kirin
  class Store
    # The bytes of an entry of a cache, which its reader gives to Marshal.
    #
    # In the store a signature is before them. It belongs to the key of the item, so that no entry
    # can take the place of another. This class is also the serializer of `Kirin::Store` for them.
    class SignedEntry < String
      DIGEST = "SHA256"
      SIGNATURE_BYTES = 32

      # Returns the key of signatures for a secret, which may be used for other things as well.
      def self.key(secret)
        unless secret.is_a?(String) && !secret.empty?
          raise ArgumentError, "a cache signs its entries: give it `secret`, a long random String"
        end

        OpenSSL::HMAC.digest(DIGEST, secret, "kirin cache")
      end

      def self.dump(entry)
        unless entry.is_a?(SignedEntry)
          raise TypeError, "only entries and Strings, not #{entry.class}"
        end

        String.new(entry)
      end

      def self.load(bytes)
        new(bytes)
      end

      # Returns the bytes with their signature, for the item `name`.
      def sign(key, name)
        SignedEntry.new(signature(key, name, to_str) + b)
      end

      # Returns the bytes without their signature, or nil if it is not right.
      def verified(key, name)
        payload = byteslice(SIGNATURE_BYTES..).to_s
        given = byteslice(0, SIGNATURE_BYTES)
        return unless given.bytesize == SIGNATURE_BYTES

        right = signature(key, name, payload)
        SignedEntry.new(payload) if OpenSSL.fixed_length_secure_compare(String.new(given), right)
      end

      private

      def signature(key, name, payload)
        OpenSSL::HMAC.digest(DIGEST, key, "#{name.b}\0".b << payload.b)
      end
    end
  end
end
