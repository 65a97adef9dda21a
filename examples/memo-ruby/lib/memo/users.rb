# frozen_string_literal: true

require_relative "password"

module Memo
  # The accounts of a database.
  class Users
    NAME = /\A[A-Za-z0-9][A-Za-z0-9_-]{1,19}\z/.freeze
    PASSWORD_LENGTHS = (8..200).freeze

    # A sign-up that breaks a rule. The message is for the visitor.
    class NotAccepted < StandardError; end

    # An account.
    User = Struct.new(:id, :name)

    def initialize(database)
      @database = database
    end

    # Creates an account. Returns the user, or raises NotAccepted.
    def sign_up(name, password)
      unless NAME.match?(name)
        raise NotAccepted,
              "A name is 2 to 20 letters, digits, “-” or “_”, and starts with a letter or digit."
      end
      unless PASSWORD_LENGTHS.cover?(password.length)
        raise NotAccepted,
              "A password is #{PASSWORD_LENGTHS.min} to #{PASSWORD_LENGTHS.max} characters long."
      end
      raise NotAccepted, "A password has no control characters." if password.match?(/\p{Cc}/)

      id = @database.insert(
        "INSERT INTO user (name, password_hash, created_at) VALUES (?, ?, ?) " \
        "ON CONFLICT (name) DO NOTHING",
        [name, Password.hashed(password), Time.now.to_i]
      )
      id ? User.new(id, name) : raise(NotAccepted, "The name “#{name}” is taken.")
    end

    # Returns the user with this name and password, or nil.
    def sign_in(name, password)
      user = @database.row("SELECT id, name, password_hash FROM user WHERE name = ?", [name])
      return if password.length > PASSWORD_LENGTHS.max || password.include?("\0")

      hash = user ? user["password_hash"] : Password.of_nobody
      is_right = Password.matches?(password, hash)
      User.new(user["id"], user["name"]) if user && is_right
    end
  end
end
