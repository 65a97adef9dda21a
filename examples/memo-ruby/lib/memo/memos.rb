# frozen_string_literal: true

require_relative "markdown"

module Memo
  # The memos: writes one, finds one, lists them. A memo is a row, a Hash with columns by name.
  class Memos
    PER_PAGE = 100
    NEWEST_COUNT = 8

    LISTED = <<~SQL
      SELECT memo.id, memo.title, memo.excerpt, memo.created_at, memo.public_number,
             user.name AS author
        FROM memo JOIN user ON user.id = memo.user_id
    SQL

    # The memos of a database.
    def initialize(database)
      @database = database
    end

    # Creates a memo. Returns its id. A block is called when no other process can write.
    def create(user_id, content, is_private)
      title, excerpt = Markdown.title_and_excerpt(content)
      @database.exclusively do
        yield if block_given?
        # The lock is why public numbers have no gap.
        public_number = is_private ? nil : public_total + 1
        @database.insert(
          "INSERT INTO memo (user_id, title, excerpt, content, public_number, created_at) " \
          "VALUES (?, ?, ?, ?, ?, ?)",
          [user_id, title, excerpt, content, public_number, Time.now.to_i]
        )
      end
    end

    # Returns a memo, or nil.
    def find(id)
      @database.row(<<~SQL, [id])
        SELECT memo.id, memo.user_id, memo.title, memo.content, memo.created_at,
               memo.public_number, user.name AS author
          FROM memo JOIN user ON user.id = memo.user_id WHERE memo.id = ?
      SQL
    end

    # Returns the number of public memos.
    #
    # It is also the version of every public page, because nothing else changes them.
    def public_total
      @database.value("SELECT MAX(public_number) FROM memo") || 0
    end

    # Returns the public memos of a page, newest first. Page 0 is the newest.
    def public_page(page)
      newest = public_total - page * PER_PAGE
      @database.execute(
        "#{LISTED} WHERE memo.public_number BETWEEN ? AND ? ORDER BY memo.public_number DESC",
        [newest - PER_PAGE + 1, newest]
      )
    end

    # Returns the number of the last page that has a memo.
    def last_page
      [0, (public_total - 1) / PER_PAGE].max
    end

    # Returns the newest public memos.
    def newest
      @database.execute(
        "#{LISTED} WHERE memo.public_number > ? ORDER BY memo.public_number DESC",
        [public_total - NEWEST_COUNT]
      )
    end

    # Returns all memos of an author, newest first.
    def of_user(user_id)
      @database.execute("#{LISTED} WHERE memo.user_id = ? ORDER BY memo.id DESC", [user_id])
    end

    # Returns the ids of the same author's public memos before and after this one.
    def public_neighbours(memo)
      neighbours("public_number", memo["user_id"], memo["public_number"])
    end

    # Returns the ids of all the author's memos before and after this one.
    #
    # Only the author may see them.
    def all_neighbours(memo)
      neighbours("id", memo["user_id"], memo["id"])
    end

    # Returns the ids of memos whose page has changed since there were `number` public memos.
    #
    # These are the new ones, and for each new one its author's previous memo, which now has a newer
    # neighbour.
    def ids_touched_since(number)
      memos = @database.execute(
        "SELECT id, user_id, public_number FROM memo WHERE public_number > ?", [number]
      )
      memos.flat_map { |memo| [memo["id"], public_neighbours(memo)[:older]] }.compact.uniq
    end

    # Returns the ids of an author's public and private memos, as two ascending lists.
    def ids_of_author(user_id)
      memos = @database.execute(
        "SELECT id, public_number FROM memo WHERE user_id = ? ORDER BY id", [user_id]
      )
      memos.partition { |memo| memo["public_number"] }.map { |part| ids_in(part) }
    end

    # Returns the ids of all public memos.
    def public_ids
      ids_in(@database.execute("SELECT id FROM memo WHERE public_number IS NOT NULL"))
    end

    # Returns the ids of all private memos.
    def private_ids
      ids_in(@database.execute("SELECT id FROM memo WHERE public_number IS NULL"))
    end

    # Returns the ids of all users with a memo.
    def author_ids
      ids_in(@database.execute("SELECT DISTINCT user_id AS id FROM memo"))
    end

    private

    def neighbours(column, user_id, number)
      of_author = "SELECT id FROM memo WHERE user_id = ?"
      values = [user_id, number]
      {
        older: @database.value(
          "#{of_author} AND #{column} < ? ORDER BY #{column} DESC LIMIT 1", values
        ),
        newer: @database.value("#{of_author} AND #{column} > ? ORDER BY #{column} LIMIT 1", values)
      }
    end

    def ids_in(rows)
      rows.map { |row| row["id"] }
    end
  end
end
