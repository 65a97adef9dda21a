# frozen_string_literal: true

require_relative "only_a_copy"

module Memo
  # Keeps the public pages in the store correct.
  #
  # Kirin answers a request with the store item whose key is the request's path. So there is one
  # rule: an item may be missing (then the application answers), but it must never be older than the
  # database. This order of events would break the rule: process A reads the memos and renders "/".
  # B adds a memo and removes "/" from the store. A stores its "/". Now the old page is served for
  # good. A memcached "cas" does not help A, because for a missing page there is no cas number. So:
  #
  # - Every public page has a version: the number of public memos from which it was rendered.
  #   (`Memos` numbers them without a gap, and nothing else changes a public page.) It comes from
  #   the same database snapshot as the page.
  # - All writes to the store happen inside the database's write lock (BEGIN IMMEDIATE). So they
  #   come one after the other, and no process commits between them. `push` stores a page only if
  #   its version is still the current one. It drops a stale page.
  # - A process that adds a memo commits first and then settles (a push starts with that): it
  #   removes every page that the memo has changed. So a push before the commit is removed, and a
  #   push after it is refused by its version.
  #
  # Two cases are left: the time between commit and settle (the writer has no response yet), and a
  # process that dies or cannot reach the store in this time. For these the store has the LEDGER
  # item: the last public memo up to which its pages are settled. Settling starts from there, not
  # from the process's own memo. So every settle and every push repairs the state that another
  # process left. If the ledger is missing or foreign (store restarted, restored from an old
  # snapshot, another database, other templates), no page can be trusted. Then all pages that may be
  # stored are removed.
  class PageStore
    LEDGER = "memo/ledger"
    PAGE_TYPE = "text/html; charset=UTF-8"
    RETRY_AFTER_SECS = 1
    # A last protection. One case is left: a "set" that this side gave up after its time limit, and
    # that a stalled store carries out after another process's settling.
    PAGE_LIFETIME_SECS = 600

    # `pages` says what belongs there: `identity` of pages that may share a store, `fragments` as a
    # Hash of key to HTML, and `keys_changed(number)` since there were so many public memos (nil:
    # all keys). It is asked under the lock.
    def initialize(store, database, memos, pages)
      @store = store
      @database = database
      @memos = memos
      @pages = pages
      @is_settled = false
      @next_try = 0
    end

    # Returns whether there is a store.
    def used?
      @store.used?
    end

    # Settles what this process could not settle yet. Runs before a request is answered.
    #
    # It is also the first action of a new process. So the next worker repairs the state that a
    # killed worker left between commit and settle.
    def catch_up
      under_lock { true } if used? && !@is_settled && now >= @next_try
    end

    # Stores a page from `version` public memos, unless it is no longer the newest. Returns whether
    # it is stored.
    def push(path, html, version)
      return false unless used?

      under_lock do |current|
        current == version && @store.client.set_page(path, PAGE_TYPE, html, PAGE_LIFETIME_SECS)
      end
    end

    private

    # Calls the block under the lock, with the number of public memos and a settled store. Returns
    # what the block returns, or false if the store could not be settled.
    def under_lock
      @is_settled = false
      @next_try = now + RETRY_AFTER_SECS
      OnlyACopy.store("a page") do
        result = @database.exclusively do
          current = @memos.public_total
          settle_to(current)
          yield current
        end
        @is_settled = true
        result
      end
    end

    # Raises Kirin::Store::Error if the store could not be settled.
    def settle_to(current)
      client = @store.client
      identity = @pages.identity
      have = client.get_multi(LEDGER, *PublicPages::FRAGMENT_KEYS)
      settled = number_in(have[LEDGER], identity)
      settled = nil if settled && settled > current
      is_new = settled != current

      # Fragments are replaced and never removed, because the store may have a page that names them
      # at any time.
      if is_new || !PublicPages::FRAGMENT_KEYS.all? { |key| have.key?(key) }
        client.set_multi(@pages.fragments.transform_values(&:b))
      end
      return unless is_new

      client.purge(keys: @pages.keys_changed(settled))
      client.set(LEDGER, "#{identity} #{current}".b)
    end

    # Returns the number of memos in a ledger, or nil if it is not one of this identity.
    def number_in(ledger, identity)
      name, number = ledger.to_s.split(" ", 2)
      number.to_i if name == identity && number.to_s.match?(/\A[0-9]+\z/)
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
