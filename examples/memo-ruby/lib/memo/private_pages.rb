# frozen_string_literal: true

require_relative "html"
require_relative "markdown"
require_relative "only_a_copy"
require_relative "users"

module Memo
  # Pages that only an author sees: private memos, and the links through them.
  #
  # The store has the parts from which lua/private_memo.lua makes the same pages, under keys that
  # nobody can request:
  #
  # - private/memo/N has the author's id, LF, and the page with comments in place of links and CSRF
  #   token.
  # - author/ID/public and author/ID/private have the ids of the author's memos, ascending.
  #
  # Memos do not change, but the lists do. They are written inside the database's write lock, from
  # committed data only. A process that adds a memo deletes them inside the lock, before it commits.
  # So an existing list is correct, and a process may die at any time. `SiteStore` handles a list
  # that cannot be deleted because the store is away.
  class PrivatePages
    LIFETIME_SECS = 600
    NEIGHBOURS = Html.new("<!--# neighbours -->").freeze
    CSRF_TOKEN = Html.new("<!--# csrf_token -->").freeze

    def initialize(database:, memos:, view:, store:)
      @database = database
      @memos = memos
      @view = view
      @store = store
    end

    # Returns the page of a private memo, for its author.
    def page(memo, csrf_token)
      author = Users::User.new(memo["user_id"], memo["author"])
      html = @view.page(
        "private_memo",
        memo: memo,
        body: Markdown.html(memo["content"]),
        neighbours: NEIGHBOURS,
        session_bar: @view.part("session_bar", user: author, csrf_token: CSRF_TOKEN)
      )
      keep(memo, "private/memo/#{memo['id']}" => "#{memo['user_id']}\n#{html}")
      html.gsub(
        Regexp.union(NEIGHBOURS, CSRF_TOKEN),
        NEIGHBOURS => links(memo), CSRF_TOKEN => csrf_token
      )
    end

    # Returns the links of any memo as its author sees them.
    def neighbours(memo)
      keep(memo, {})
      links(memo)
    end

    # Deletes the lists of an author. Runs inside the transaction that adds a memo.
    def author_writes(user_id)
      @store.delete_surely(LIFETIME_SECS, lists(user_id))
    end

    # Returns all keys that may be in the store.
    def keys_in_store
      pages = @memos.private_ids.map { |id| "private/memo/#{id}" }
      pages + @memos.author_ids.flat_map { |user_id| lists(user_id) }
    end

    private

    def links(memo)
      @view.part(
        "neighbours", memo: memo, neighbours: @memos.all_neighbours(memo), is_own: true
      )
    end

    def lists(user_id)
      ["author/#{user_id}/public", "author/#{user_id}/private"]
    end

    # Stores the given items and the lists of the memo's author, those that are missing.
    def keep(memo, items)
      OnlyACopy.store("a private page") { store_missing(memo, items) } if @store.used?
    end

    def store_missing(memo, items)
      keys = lists(memo["user_id"]) + items.keys
      missing = keys - @store.client.get_multi(keys).keys
      return if missing.empty?

      @database.exclusively do
        ids = @memos.ids_of_author(memo["user_id"]).map { |part| part.join(" ") }
        all = lists(memo["user_id"]).zip(ids).to_h.merge(items)
        @store.client.set_multi(all.slice(*missing).transform_values(&:b), LIFETIME_SECS)
      end
    end
  end
end
