# frozen_string_literal: true

require_relative "refusal"
require_relative "response"

module Memo
  # The pages for everybody, and the parts of them that are for one visitor.
  module Public
    class << self
      # Answers GET / and /recent/N, if the store has no such page.
      def page(site, request, _number = nil)
        public_page(site, request) or raise Refusal.new(404, "There is no such page.")
      end

      # Answers GET /memo/N.
      #
      # Public memos are as above. A private memo is for its author. For others it does not exist.
      def memo(site, request, id)
        answer = public_page(site, request)
        return answer if answer

        memo = own_memo(site, request, id)
        unless memo
          raise Refusal.new(404, "There is no such memo, or it is not yours to read.")
        end

        Response.personal_page(site.private_pages.page(memo, request.csrf_token))
      end

      # Answers GET /memo/N/neighbours: the links that only the author sees.
      #
      # The page of a public memo includes them for its author.
      def neighbours(site, request, id)
        memo = own_memo(site, request, id)
        raise Refusal.new(404, "There is no such memo, or it is not yours.") unless memo

        Response.personal_page(site.private_pages.neighbours(memo))
      end

      # Answers GET /session-bar.
      #
      # Public pages include it if the store has no copy of the visitor's session. Looking at the
      # session writes the copy again.
      def session_bar(site, request)
        Response.personal_page(site.session_bar(request))
      end

      private

      def public_page(site, request)
        user = request.user_signed_in
        html = site.pages.answer(
          request.path, session_bar: site.session_bar(request), user_id: user&.id
        )
        return unless html

        user ? Response.personal_page(html) : Response.public_page(html)
      end

      # Returns the memo, if the visitor has written it.
      def own_memo(site, request, id)
        user = request.user_signed_in
        memo = site.memos.find(id) if user
        memo if memo && memo["user_id"] == user.id
      end
    end
  end
end
