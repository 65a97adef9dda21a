# frozen_string_literal: true

require_relative "account"
require_relative "database"
require_relative "memos"
require_relative "private_pages"
require_relative "public"
require_relative "public_pages"
require_relative "refusal"
require_relative "request"
require_relative "response"
require_relative "router"
require_relative "session_items"
require_relative "sessions"
require_relative "site_store"
require_relative "users"
require_relative "view"
require_relative "writing"

module Memo
  # The memo site as an application of Rack.
  class Site
    ROUTES = [
      ["GET", "/", Public.method(:page)],
      ["GET", "/recent/{number}", Public.method(:page)],
      ["GET", "/memo/{number}", Public.method(:memo)],
      ["GET", "/memo/{number}/neighbours", Public.method(:neighbours)],
      ["GET", "/session-bar", Public.method(:session_bar)],
      ["GET", "/mypage", Writing.method(:mypage)],
      ["POST", "/memo", Writing.method(:write)],
      ["GET", "/signup", Account.method(:sign_up_form)],
      ["POST", "/signup", Account.method(:sign_up)],
      ["GET", "/signin", Account.method(:sign_in_form)],
      ["POST", "/signin", Account.method(:sign_in)],
      ["POST", "/signout", Account.method(:sign_out)]
    ].freeze
    TITLE_OF_STATUS = {
      400 => "Bad request", 403 => "Refused", 404 => "Not found", 405 => "Not allowed",
      413 => "Too large"
    }.freeze

    attr_reader :database, :memos, :users, :store, :sessions, :pages, :private_pages

    # `database`, `schema` and `templates` are paths, `store` is an address or nil.
    def initialize(database:, schema:, templates:, store:)
      @database = Database.new(database, schema)
      if @database.install_schema
        warn "memo: made an empty database at #{@database.path}; seed.pl fills one"
      end
      # A preloading server forks its workers after this. Each worker opens its own connection.
      @database.close

      @view = View.new(templates)
      @memos = Memos.new(@database)
      @users = Users.new(@database)
      @store = SiteStore.new(store)
      @sessions = Sessions.new(@database, SessionItems.new(@database, @store))
      parts = { database: @database, memos: @memos, view: @view, store: @store }
      @private_pages = PrivatePages.new(**parts)
      @pages = PublicPages.new(**parts, private_pages: @private_pages)
      @router = Router.new(ROUTES)
    end

    # Answers the request of an environment of Rack.
    def call(env)
      @store.catch_up
      @pages.store.catch_up
      request = Request.new(env, @sessions)
      # Any other exception is an error of the application. The server logs it and answers 500.
      begin
        answer = dispatch(request)
      rescue Refusal => e
        answer = refuse(request, e)
      end
      answer.to_rack(is_head: request.method == "HEAD")
    end

    # Returns a page for this visitor, with the session bar filled in.
    #
    # A form (a Hash, or nil) has the token and the cookie that it needs.
    def personal_page(request, template, status = 200, form: nil, **variables)
      csrf_token = request.csrf_token if form
      html = @view.page(
        template,
        status: status, form: form, csrf_token: csrf_token, session_bar: session_bar(request),
        **variables
      )
      Response.personal_page(html, status, request.form_cookies)
    end

    # Returns the end of the bar at the top for this visitor.
    def session_bar(request)
      user = request.user_signed_in
      @view.part("session_bar", user: user, csrf_token: (request.csrf_token if user))
    end

    private

    def dispatch(request)
      handler, numbers, allowed = @router.match(request.method, request.path)
      return handler.call(self, request, *numbers) if handler
      raise Refusal.new(404, "There is no such page.") if allowed.empty?

      raise Refusal.new(405, "This address does not do that.", "allow" => allowed.join(", "))
    end

    def refuse(request, refusal)
      answer = personal_page(
        request, "refusal", refusal.status,
        title: TITLE_OF_STATUS.fetch(refusal.status), reason: refusal.message
      )
      answer.headers.merge!(refusal.headers)
      answer
    end
  end
end
