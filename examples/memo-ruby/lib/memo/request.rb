# frozen_string_literal: true

require "cgi"
require "rack"
require_relative "refusal"
require_relative "sessions"

module Memo
  # A request, its visitor and its form.
  class Request
    LARGEST_FORM_BYTES = 256 * 1024
    FORM_TYPE = "application/x-www-form-urlencoded"

    # The token of the visitor's cookie, or nil.
    attr_reader :session_token

    # The request of an environment of Rack.
    def initialize(env, sessions)
      @env = env
      @sessions = sessions
      @session_token = Sessions.token_in(Rack::Utils.parse_cookies(env))
      @has_new_token = false
    end

    # Returns the method: GET, POST …
    def method
      @env["REQUEST_METHOD"]
    end

    # Returns the decoded path, as bytes. Rack has it as the client has sent it.
    def path
      Rack::Utils.unescape_path(@env["PATH_INFO"].b)
    end

    # Returns whether the visitor's connection is encrypted.
    def https?
      @env["rack.url_scheme"] == "https"
    end

    # Returns the signed-in user, or nil.
    def user_signed_in
      @user_signed_in = @sessions.user(@session_token) unless defined?(@user_signed_in)
      @user_signed_in
    end

    # Returns the token for the forms of this response.
    #
    # A visitor without a cookie gets one for it (see `form_cookies`).
    def csrf_token
      if @session_token.nil?
        @session_token = Sessions.new_token
        @has_new_token = true
      end
      @sessions.csrf_token(@session_token)
    end

    # Returns the Set-Cookie values of a page with forms.
    def form_cookies
      @has_new_token ? Sessions.cookies_for_form(@session_token, https?) : []
    end

    # Returns a field of the posted form as text.
    def field(name)
      text = form.fetch(name, "").dup.force_encoding(Encoding::UTF_8)
      raise Refusal.new(400, "The form is not in UTF-8.") unless text.valid_encoding?

      text
    end

    # Checks a POST. Every handler calls this before it uses the form.
    def refuse_forgeries
      if @env["CONTENT_LENGTH"].to_i > LARGEST_FORM_BYTES
        raise Refusal.new(413, "The form is too large.")
      end
      return if @sessions.csrf_token_right?(@session_token, form["csrf_token"])

      raise Refusal.new(
        403,
        "This form is not from this site, or it is too old. Go back, reload and try again."
      )
    end

    private

    # Returns the fields of the posted form as bytes.
    def form
      @form ||= form? ? fields_of(@env["rack.input"].read) : {}
    end

    def form?
      @env["CONTENT_TYPE"].to_s.downcase.start_with?(FORM_TYPE)
    end

    def fields_of(body)
      body.split("&").to_h do |pair|
        name, _, value = pair.partition("=")
        [CGI.unescape(name, Encoding::BINARY), CGI.unescape(value, Encoding::BINARY)]
      end
    end
  end
end
