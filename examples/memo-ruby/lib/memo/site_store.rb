# frozen_string_literal: true

module Memo
  # Kirin's store as the site uses it: it may be absent, and it may be away for a while.
  class SiteStore
    # A dead store costs a request at most this time, and then nothing for a second.
    TIMEOUT_SECS = 0.5

    # The Kirin::Store, or nil.
    attr_reader :client

    # `address` is `unix:PATH` or `HOST:PORT`. nil means that there is no store.
    def initialize(address)
      @undeleted = {}
      return if address.to_s.empty?

      # Without a store the site needs nothing of Kirin.
      require "kirin/store"
      @client = Kirin::Store.new(address, timeout: TIMEOUT_SECS)
    end

    # Returns whether there is a store.
    def used?
      !@client.nil?
    end

    # Deletes items that must no longer be served.
    #
    # If the store is away, they are deleted before this process answers its next request
    # (`catch_up`), unless they have ended by themselves after `lifetime` seconds.
    def delete_surely(lifetime, keys)
      return unless used?

      keys.each { |key| @undeleted[key] = Time.now + lifetime }
      catch_up
    end

    # Deletes what could not be deleted before.
    def catch_up
      @undeleted.delete_if { |key, ends_at| deleted?(key) || Time.now > ends_at }
    end

    private

    # Returns whether the item is gone, and not whether it was there.
    def deleted?(key)
      @client.delete(key)
      true
    rescue Kirin::Store::Error
      false
    end
  end
end
