# frozen_string_literal: true

require_relative "html"
require_relative "markdown"
require_relative "page_store"
require_relative "users"

module Memo
  # The pages for all visitors, and their way into the store: /, /recent/N and public /memo/N.
  #
  # A stored page is the same for all visitors. It has comments that Kirin carries out when it
  # serves the page (server side includes):
  #
  # - "include KEY" stands for parts that most pages share and every new memo changes. So a new memo
  #   replaces two small items and leaves thousands of pages unchanged.
  # - "if" and "echo" of the visitor's session (`SessionItems`) are in the bar at the top and, for
  #   the links to private neighbours, on a memo's page. "include virtual" asks the application for
  #   missing parts.
  #
  # If a page does not go through the store, `filled` does the same.
  class PublicPages
    TOTAL = "fragment/total"
    NEWEST = "fragment/newest"
    SESSION_BAR = "fragment/session-bar"
    FRAGMENT_KEYS = [TOTAL, NEWEST, SESSION_BAR].freeze

    LIST = %r{\A/recent/([0-9]+)\z}.freeze
    MEMO = %r{\A/memo/([0-9]+)\z}.freeze
    # Only our templates can write such a comment, because "<" in a memo is always escaped.
    INCLUDE = /<!--# include (\S+) -->/.freeze
    FOR_AUTHOR = /
      <!--\#\ if\ expr="\$session\.user_id\ =\ ([0-9]+)"\ -->.*?
      <!--\#\ else\ -->(.*?)<!--\#\ endif\ -->
    /mx.freeze

    # The PageStore.
    attr_reader :store

    # `private_pages` has the links that only an author sees.
    def initialize(database:, memos:, view:, store:, private_pages:)
      @database = database
      @memos = memos
      @view = view
      @private_pages = private_pages
      @store = PageStore.new(store, database, memos, self)
    end

    # Returns the page for a visitor, or nil if there is no such public page. Stores it too.
    def answer(path, session_bar: "", user_id: nil)
      html, version, parts = @database.snapshot do
        html = render(path)
        html && [html, @memos.public_total, fragments]
      end
      return unless html

      @store.push(path, html, version)
      filled(html, path, parts.merge(SESSION_BAR => session_bar), user_id)
    end

    # Renews the most popular page, so that its visitors do not all request it at once.
    #
    # Runs after a public memo was added: no older page may be served from here on. Storing this
    # page settles the other pages under the same lock.
    def memo_was_added
      answer("/") if @store.used?
    end

    # Returns the page as it is stored, with the comments, or nil.
    def render(path)
      case path
      when "/" then list(0, "front")
      when LIST then list(Regexp.last_match(1).to_i, "recent")
      when MEMO then memo(Regexp.last_match(1).to_i)
      end
    end

    # ---------------------------------------------------------------- for PageStore

    # Returns the name of this site's pages: other templates make other pages.
    def identity
      "#{@database.setting('site_id')}/#{@view.fingerprint}"
    end

    # Returns the parts that pages share, by their keys.
    def fragments
      {
        TOTAL => @memos.public_total.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ","),
        NEWEST => @view.part("newest", memos: @memos.newest),
        SESSION_BAR => session_bar
      }
    end

    # Returns the keys of the pages that have changed since there were `settled` public memos.
    #
    # Every new memo shifts all lists, so all are removed and made again at the next request. Of the
    # memos' pages only those of the new memos and of their older neighbours change. The parts of
    # private pages go only if nothing in the store can be trusted, which nil stands for.
    def keys_changed(settled)
      ids = settled ? @memos.ids_touched_since(settled) : @memos.public_ids
      keys = ["/"]
      keys.concat((0..@memos.last_page).map { |page| "/recent/#{page}" })
      keys.concat(ids.map { |id| "/memo/#{id}" })
      keys.concat(@private_pages.keys_in_store) unless settled
      keys
    end

    private

    def filled(html, path, parts, user_id)
      for_visitor = html.gsub(FOR_AUTHOR) do
        is_author = Regexp.last_match(1).to_i == user_id
        everybodys = Regexp.last_match(2)
        is_author ? links_of_author(path) : everybodys
      end
      for_visitor.gsub(INCLUDE) { parts.fetch(Regexp.last_match(1), "") }
    end

    def links_of_author(path)
      @private_pages.neighbours(@memos.find(path[MEMO, 1].to_i))
    end

    def list(page, template)
      last = @memos.last_page
      return if page > last

      @view.page(
        template,
        memos: @memos.public_page(page), page: page, last_page: last,
        total: include_of(TOTAL), session_bar: include_of(SESSION_BAR)
      )
    end

    def memo(id)
      memo = @memos.find(id)
      return unless memo && memo["public_number"]

      everybodys = @view.part(
        "neighbours", memo: memo, neighbours: @memos.public_neighbours(memo)
      )
      @view.page(
        "memo",
        memo: memo, body: Markdown.html(memo["content"]),
        neighbours: @view.part("stored_neighbours", memo: memo, everybodys: everybodys),
        newest: include_of(NEWEST), total: include_of(TOTAL), session_bar: include_of(SESSION_BAR)
      )
    end

    # Returns the part for each kind of visitor, and the comments that choose.
    def session_bar
      visitor = Users::User.new(nil, echo_of("session.name"))
      @view.part(
        "stored_session_bar",
        stranger: @view.part("session_bar"),
        signed_in: @view.part(
          "session_bar", user: visitor, csrf_token: echo_of("session.csrf_token")
        )
      )
    end

    def include_of(key)
      Html.new("<!--# include #{key} -->")
    end

    # Kirin escapes echoed values.
    def echo_of(variable)
      Html.new(%(<!--# echo var="#{variable}" default="" -->))
    end
  end
end
