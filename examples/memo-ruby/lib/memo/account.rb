# frozen_string_literal: true

require_relative "response"
require_relative "sessions"
require_relative "users"

module Memo
  # Sign up, in and out.
  module Account
    SIGN_UP = { action: "/signup", title: "Sign up", is_sign_up: true }.freeze
    SIGN_IN = { action: "/signin", title: "Sign in", is_sign_up: false }.freeze

    class << self
      # Answers GET /signup.
      def sign_up_form(site, request)
        form(site, request, SIGN_UP)
      end

      # Answers GET /signin.
      def sign_in_form(site, request)
        form(site, request, SIGN_IN)
      end

      # Answers POST /signup.
      def sign_up(site, request)
        request.refuse_forgeries
        name = request.field("name")
        welcome(site, request, site.users.sign_up(name, request.field("password")))
      rescue Users::NotAccepted => e
        again(site, request, SIGN_UP.merge(name: name, problem: e.message))
      end

      # Answers POST /signin.
      def sign_in(site, request)
        request.refuse_forgeries
        name = request.field("name")
        user = site.users.sign_in(name, request.field("password"))
        return welcome(site, request, user) if user

        again(site, request, SIGN_IN.merge(name: name, problem: "Name or password is wrong."))
      end

      # Answers POST /signout.
      def sign_out(site, request)
        request.refuse_forgeries
        site.sessions.end(request.session_token)
        Response.see_other("/", Sessions.cookies_for_sign_out(request.https?))
      end

      private

      def form(site, request, form)
        return Response.see_other("/mypage") if request.user_signed_in

        site.personal_page(request, "account", form: form)
      end

      def again(site, request, form)
        site.personal_page(request, "account", 400, form: form)
      end

      def welcome(site, request, user)
        token = site.sessions.start(user, request.session_token)
        Response.see_other("/mypage", Sessions.cookies_for_sign_in(token, request.https?))
      end
    end
  end
end
