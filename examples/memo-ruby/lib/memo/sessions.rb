# frozen_string_literal: true

require "digest"
require "openssl"
require "rack"
require "securerandom"
require_relative "users"

module Memo
  # Who is signed in, and CSRF tokens.
  #
  # Sessions are in the database and not in the store. The store may be restarted, may evict items,
  # and may be switched off, and that should sign nobody out. The store has copies (`SessionItems`).
  #
  # The cookie is a random token that every visitor of a form gets. Only a signed-in visitor's token
  # has a row. The CSRF token of a form is a MAC of the cookie's token. So the sign-in form is
  # protected too, and nothing has to be kept for visitors who only read.
  class Sessions
    COOKIE = "memo_session"
    # A cookie for pages from the store. If the copy of the session is missing, it shows that a
    # request to the application is useful.
    HINT_COOKIE = "memo_signed_in"
    TOKEN = /\A[0-9a-f]{36}\z/.freeze
    LIFETIME_SECS = 30 * 24 * 3600

    class << self
      # Returns 144 unguessable bits as 36 hexadecimal digits.
      def new_token
        SecureRandom.hex(18)
      end

      # Returns the token of a visitor with these cookies, or nil.
      def token_in(cookies)
        token = cookies[COOKIE].to_s
        token if token.b.match?(TOKEN)
      end

      # Returns the Set-Cookie values for a visitor who gets a form.
      def cookies_for_form(token, is_https)
        [cookie(COOKIE, token, "HttpOnly", is_https)]
      end

      # Returns the Set-Cookie values for the response to a sign-in.
      def cookies_for_sign_in(token, is_https)
        attributes = "Max-Age=#{LIFETIME_SECS}; HttpOnly"
        [
          cookie(COOKIE, token, attributes, is_https),
          cookie(HINT_COOKIE, "1", attributes, is_https)
        ]
      end

      # Returns the Set-Cookie values for the response to a sign-out.
      def cookies_for_sign_out(is_https)
        [COOKIE, HINT_COOKIE].map { |name| cookie(name, "", "Max-Age=0; HttpOnly", is_https) }
      end

      private

      def cookie(name, value, attributes, is_https)
        "#{name}=#{value}; Path=/; SameSite=Lax; #{attributes}#{'; Secure' if is_https}"
      end
    end

    # The copies in the store.
    attr_reader :items

    # The sessions of a database.
    def initialize(database, items)
      @database = database
      @items = items
    end

    # Returns the user who is signed in under this token, or nil.
    def user(token)
      session = find(token) if token
      return unless session

      @items.keep(token, session["expires_at"]) { find(token) }
      Users::User.new(session["user_id"], session["name"])
    end

    # Returns the content of a copy, and when the session ends, or nil.
    def find(token)
      row = @database.row(<<~SQL, [digest(token), Time.now.to_i])
        SELECT user.id AS user_id, user.name, session.expires_at
          FROM session JOIN user ON user.id = session.user_id
         WHERE session.token_digest = ? AND session.expires_at > ?
      SQL
      row && { "csrf_token" => csrf_token(token), **row.slice("name", "user_id", "expires_at") }
    end

    # Signs the user in under a new token, so that one planted by an attacker is worthless. Returns
    # the token.
    def start(user, old_token)
      token = Sessions.new_token
      self.end(old_token) if old_token
      now = Time.now.to_i
      @database.exclusively do
        @database.execute("DELETE FROM session WHERE expires_at <= ?", [now])
        @database.execute(
          "INSERT INTO session (token_digest, user_id, expires_at) VALUES (?, ?, ?)",
          [digest(token), user.id, now + LIFETIME_SECS]
        )
      end
      @items.begin(token) { find(token) }
      token
    end

    # Ends the session with this token, if there is one.
    def end(token)
      @database.execute("DELETE FROM session WHERE token_digest = ?", [digest(token)])
      @items.forget(token)
    end

    # Returns the token for the forms of the visitor with this token.
    def csrf_token(token)
      @csrf_key ||= @database.setting("csrf_key")
      OpenSSL::HMAC.hexdigest("SHA256", @csrf_key, token)
    end

    # Returns whether `given`, which came with a form, is the visitor's.
    def csrf_token_right?(token, given)
      !token.nil? && !given.nil? && Rack::Utils.secure_compare(given, csrf_token(token))
    end

    private

    def digest(token)
      Digest::SHA256.hexdigest(token)
    end
  end
end
