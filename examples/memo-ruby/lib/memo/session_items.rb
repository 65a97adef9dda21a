# frozen_string_literal: true

require "json"
require_relative "only_a_copy"

module Memo
  # Copies of sessions in the store, for pages that Kirin builds without a worker.
  #
  # A copy is {"csrf_token":…,"name":…,"user_id":…} under the cookie's token. The sessions
  # themselves are in the database (`Sessions`). If a copy is missing, the page asks the application
  # for the visitor's part, which writes the copy again. But a copy must not live longer than its
  # session:
  #
  # - It is written inside the database's write lock, if the session still exists. Signing out first
  #   deletes the row and then the copy. So either the writer sees that the row is gone, or its copy
  #   is there before it is deleted.
  # - If a copy cannot be deleted, because the store is away, this process deletes it before it
  #   answers the next request. One case is left: a process that dies in this time. For that the
  #   copy has a short life.
  class SessionItems
    LIFETIME_SECS = 600

    def initialize(database, store)
      @database = database
      @store = store
    end

    # Extends the life of the copy, or writes it. Runs when the session was seen. The block looks
    # for the session in the database, and returns a Hash or nil.
    def keep(token, expires_at, &find)
      return unless @store.used?

      OnlyACopy.store("a session") do
        write(token, &find) unless @store.client.touch(token, lifetime(expires_at))
      end
    end

    # Writes the copy of a session that has just started. The block is that of `keep`.
    def begin(token, &find)
      OnlyACopy.store("a session") { write(token, &find) } if @store.used?
    end

    # Deletes the copy of a session that has ended. Its row is gone.
    def forget(token)
      @store.delete_surely(LIFETIME_SECS, [token])
    end

    private

    def write(token)
      @database.exclusively do
        session = yield
        if session
          expires_at = session.delete("expires_at")
          @store.client.set(token, JSON.generate(session).b, lifetime(expires_at))
        end
      end
    end

    def lifetime(expires_at)
      # At least a second, because 0 would mean for ever.
      (expires_at - Time.now.to_i).clamp(1, LIFETIME_SECS)
    end
  end
end
