# frozen_string_literal: true

require "rack"
require "securerandom"

module Memo
  # Password hashes: yescrypt through crypt(3), which is the system's libcrypt.
  #
  # yescrypt with the cost that Debian uses for /etc/shadow ("j9T") takes 16 MB of memory and about
  # 20 ms. It has a salt, it is slow, it costs an attacker memory, and it is in C. The applications
  # in Perl and Python have the same hashes.
  module Password
    SETTING = "$y$j9T$"
    SALT_LENGTH = 22
    CRYPT64 = [".", "/", *"0".."9", *"A".."Z", *"a".."z"].freeze

    class << self
      # Returns the hash of a password, with a new salt.
      def hashed(password)
        hash = password.crypt(SETTING + salt)
        # A libcrypt without yescrypt returns an error token. That must never be stored.
        hash.start_with?(SETTING) ? hash : raise("crypt(3) has no yescrypt here")
      end

      # Returns whether this is the hash of the password.
      def matches?(password, hash)
        hash.start_with?("$") && Rack::Utils.secure_compare(password.crypt(hash), hash)
      end

      # Returns a hash to compare with for an unknown name.
      #
      # So the answer takes as long as for a known name.
      def of_nobody
        @of_nobody ||= hashed("nobody")
      end

      private

      # The last letter of yescrypt's 22 stands for the top two bits of 16 bytes, so it must be one
      # of the first four.
      def salt
        letters = Array.new(SALT_LENGTH - 1) { CRYPT64[SecureRandom.random_number(64)] }
        letters.join + CRYPT64[SecureRandom.random_number(4)]
      end
    end
  end
end
