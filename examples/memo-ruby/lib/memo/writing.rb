# frozen_string_literal: true

require_relative "refusal"
require_relative "response"

module Memo
  # One's own memos.
  module Writing
    LONGEST_MEMO = 64_000
    CONTROL = /[\p{Cc}&&[^\n\t]]/.freeze

    class << self
      # Answers GET /mypage: the form and all memos of the visitor.
      def mypage(site, request)
        user = request.user_signed_in
        user ? page(site, request, user, 200, {}) : Response.see_other("/signin")
      end

      # Answers POST /memo.
      def write(site, request)
        request.refuse_forgeries
        user = request.user_signed_in or raise Refusal.new(403, "Sign in to write a memo.")
        # Browsers send CR LF. Other control characters are removed.
        content = request.field("content").gsub(/\r\n?/, "\n").gsub(CONTROL, "")
        is_private = !request.field("is_private").empty?
        problem = problem_of(content)
        if problem
          form = { problem: problem, content: content, is_private: is_private }
          return page(site, request, user, 400, form)
        end

        memo_id = site.memos.create(user.id, content, is_private) do
          site.private_pages.author_writes(user.id)
        end
        site.pages.memo_was_added unless is_private
        Response.see_other("/memo/#{memo_id}")
      end

      private

      def problem_of(content)
        return "A memo has at least one word." unless content.match?(/[^[:space:]]/)

        "A memo has at most #{LONGEST_MEMO} characters." if content.length > LONGEST_MEMO
      end

      def page(site, request, user, status, form)
        memos = site.memos.of_user(user.id)
        site.personal_page(request, "mypage", status, form: form, memos: memos)
      end
    end
  end
end
