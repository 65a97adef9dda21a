# frozen_string_literal: true

require "securerandom"
require_relative "../store"

module Kirin
  class Store
    # The session of one visitor, as one request sees it.
    #
    # Every session is an item of the store. Its key is the value of the cookie, and its value is
    # JSON, so that pages can show it (docs/sessions.md). The rules are those of
    # Plack::Middleware::Session::Kirin (docs/perl.md):
    #
    # * The store is read when the content is needed, and not before.
    # * An existing session is written with `cas`. If another request has written it since it was
    #   read, the changes of both are merged, member by member of the top level.
    # * A session that has ended in the meantime stays ended.
    # * If the store is away, nothing is written, and the visitor keeps the cookie.
    #
    # Writes return :stored, :exists (another session has the id), :gone (there is no session with
    # the id any more) or :failed.
    class VisitorSession
      # An id has as many random bits as the SHA-1 whose form it has in Perl.
      ID_BYTES = 20
      ID = /\A[0-9a-f]{40}\z/.freeze

      # How often a session is merged with the writes of other requests before this one gives up.
      # Each time, another request has succeeded.
      MERGES = 100

      # What stands for a moment in the place of a session whose id has changed. It is no session.
      MOVED = "moved"

      # Returns whether a text from a client can be the id of a session.
      #
      # Visitors choose their cookies. No item that is not a session may be reached that way.
      def self.id?(text)
        text.is_a?(String) && text.valid_encoding? && ID.match?(text)
      end

      # Returns 40 hexadecimal digits that nobody can guess.
      def self.new_id
        SecureRandom.hex(ID_BYTES)
      end

      # The id that the client has sent, or nil.
      attr_reader :cookie

      # The members, a Hash with String keys, or nil before `load`.
      attr_accessor :content

      # `cookie` is what the client has sent, or nil. The block gets a line for the log.
      def initialize(store, cookie = nil, &log)
        @store = store
        @cookie = cookie if VisitorSession.id?(cookie)
        @log = log
        @is_lost = @was_removed = false
        # The number for `cas`, or nil if it is not known, and copies of the members that were read.
        @unique = nil
        @before = {}
      end

      # Returns whether the store could not be read or written. Then nothing more is written.
      def lost?
        @is_lost
      end

      # Returns whether the application has ended the session in this request.
      def removed?
        @was_removed
      end

      # Returns whether the store had the session when it was read or written last.
      def stored?
        !@id.nil? && @reserved.nil?
      end

      # Reads the content, once.
      def load
        return if @content

        @content = {}
        return if @cookie.nil?

        found, outcome = read(@cookie)
        if outcome == :failed
          # The visitor must not lose the session because the store is away.
          @is_lost = true
          @id = @cookie
        elsif outcome == :stored
          @id = @cookie
          @content = found
          @before = copies(found)
        end
        # An id that the store does not know is never accepted. Otherwise an attacker could choose
        # the id of a session.
      end

      # Returns whether the content differs from what was read, at any depth.
      def changed?
        !@content.nil? && !copies(@content).eql?(@before)
      end

      # Returns the id of the session, or the one that it gets when it is stored.
      def id
        @id ||= @reserved = VisitorSession.new_id
      end

      # Stores a session that the store does not have.
      def create(ttl)
        return :exists unless @store.add(id, @content, ttl)

        written(id)
      rescue Error => e
        failed("session is not stored", e)
      end

      # Writes an existing session. Keeps the changes that other requests have made.
      def update(ttl)
        MERGES.times do
          return written(@id) if @unique && @store.set_cas(@id, @unique, @content, ttl)

          outcome = reread(@id)
          return outcome unless outcome == :stored
        end
        @log.call("session is not stored: other requests have written it #{MERGES} times meanwhile")
        :failed
      rescue Error => e
        failed("session is not stored", e)
      end

      # Gives an existing session another id.
      #
      # The old session is removed only in the state in which it was copied. So writes of other
      # requests until then are not lost, and a session that ends in this time does not continue
      # under the new id.
      def move(ttl)
        old_id = @id
        new_id = VisitorSession.new_id
        outcome = copy(old_id, new_id, ttl)
        return outcome if outcome == :not_copied
        return written(new_id) if outcome == :stored

        discard(new_id)
        outcome
      end

      # Ends the session.
      def remove
        session_id = stored? ? @id : @cookie
        discard(session_id) if session_id
        @id = @reserved = @unique = nil
        @content = {}
        @before = {}
        @is_lost = false
        @was_removed = true
        @cookie = nil
      end

      # Starts the life of the session again, if that is due. Returns whether it has done so.
      def touch(ttl, times)
        return false if !stored? || @is_lost || !times.due?(@id, ttl)

        begin
          @store.touch(@id, ttl)
          true
        rescue Error => e
          times.forget(@id)
          @log.call("session is not touched: #{e.message}")
          false
        end
      end

      private

      # Returns [content, outcome].
      def read(session_id)
        @unique, found = @store.gets(session_id)
        # Any other value under this key is not a session.
        found.is_a?(Hash) ? [found, :stored] : [nil, :gone]
      rescue Error => e
        @log.call("session is not read: #{e.message}")
        [nil, :failed]
      end

      # Merges the content that another request has stored into this session. For a member that both
      # have changed, the value of this request stays.
      def reread(session_id)
        theirs, outcome = read(session_id)
        return outcome unless outcome == :stored

        before = @before
        now = copies(@content)
        mine = @content
        # From here on, the other content is the one that this request has read.
        @before = copies(theirs)
        @content = theirs
        (before.keys | now.keys).each do |name|
          next if before.key?(name) == now.key?(name) && before[name].eql?(now[name])

          now.key?(name) ? @content[name] = mine[name] : @content.delete(name)
        end
        :stored
      end

      # Copies a session for `move`, until nobody has changed it meanwhile.
      def copy(old_id, new_id, ttl)
        MERGES.times do
          if @unique.nil?
            outcome = reread(old_id)
            return outcome unless outcome == :stored
          end
          begin
            @store.set(new_id, @content, ttl)
          rescue Error => e
            # If the old one were removed as well, there would be none.
            failed("session is not stored", e)
            return :not_copied
          end
          if @store.set_cas(old_id, @unique, MOVED, 1)
            # `delete` checks no number. A value that is stored for a second is no session.
            discard(old_id)
            return :stored
          end
          @unique = nil
        end
        :failed
      rescue InvalidArgument
        raise
      rescue Error => e
        failed("session is not removed", e)
      end

      def written(session_id)
        @id = session_id
        @reserved = nil
        # The store has given the item another number.
        @unique = nil
        @before = copies(@content)
        :stored
      end

      def discard(session_id)
        @store.delete(session_id)
      rescue Error => e
        @log.call("session is not removed: #{e.message}")
      end

      def failed(what, error)
        # This is a mistake in the application, and not in the store.
        raise InvalidArgument, "#{what}: #{error.message}" if error.is_a?(InvalidArgument)

        @log.call("#{what}: #{error.message}")
        @is_lost = true
        :failed
      end

      # Returns copies of the members, in the form in which they come back from the store.
      def copies(content)
        content.to_h do |name, value|
          [name, Values.plain(value)]
        rescue InvalidArgument
          # Whoever writes it says later why it cannot be stored.
          [name, Object.new]
        end
      end
    end
  end
end
