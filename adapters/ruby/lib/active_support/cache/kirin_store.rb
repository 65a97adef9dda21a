# frozen_string_literal: true

require "active_support"
require "active_support/cache"
require "active_support/core_ext/array/extract_options"
require "kirin/store"
require "kirin/store/signed_entry"

module ActiveSupport
  module Cache
    # A cache of Rails in Kirin's store.
    #
    #   config.cache_store = :kirin_store                           # the address is in KIRIN_STORE
    #   config.cache_store = :kirin_store, "unix:/run/kirin/m.sock", { expires_in: 1.hour }
    #
    # Besides the options of all caches there are:
    #
    # `timeout`, `site`: see `Kirin::Store`.
    # `secret`: a String with which entries are signed, because Rails reads them by Marshal, and a
    # forged one could run code. An entry without the right signature is a miss. The default is
    # `secret_key_base` of the Rails application; without Rails it must be given.
    #
    # `write`, `write_multi`, `fetch` and `fetch_multi` take `tags`, and `purge` removes the items
    # that have them. Tags are shared with pages and with everything else in the store.
    #
    # If the store is away, the cache is empty. The log has a line about it, once in 10 seconds.
    class KirinStore < Store
      # Keys of Kirin's store that begin with `/` are pages. Those of a cache must not.
      NAMESPACE = "rails:"

      # Bytes of a key. The store's 250 also have the site and NAMESPACE.
      KEY_BYTES = 180
      DIGEST_BYTES = 40

      BAD_IN_KEY = /[\x00-\x20%\x7F-\xFF]/n.freeze

      # For how long an entry that has ended stays, at least, so that `race_condition_ttl` of a
      # reader finds it.
      RACE_SECONDS = 300

      # Seconds between two lines in the log about a store that is away.
      LOG_SECONDS = 10

      # Lets a local cache have a raw value as the store gives it back, before Rails 7.0.
      module RawValues
        private

        def write_entry(key, entry, **options)
          return super unless options[:raw]

          raw = Entry.new(entry.value.to_s, compress: false, version: entry.version)
          raw.expires_at = entry.expires_at
          super(key, raw, **options)
        end
      end

      prepend Strategy::LocalCache
      prepend RawValues

      def self.supports_cache_versioning?
        true
      end

      def initialize(*addresses)
        addresses = addresses.flatten
        options = addresses.extract_options!.dup
        secret = options.delete(:secret)
        @signature_key = ::Kirin::Store::SignedEntry.key(secret) if secret || !in_rails?
        @store = ::Kirin::Store.new(
          *addresses, timeout: options.delete(:timeout) || 1.0, site: options.delete(:site),
                      namespace: NAMESPACE, serializer: ::Kirin::Store::SignedEntry
        )
        super(options)
      end

      # Adds to a number that was written with `raw: true`, and returns the new one. A missing one
      # is `amount` then. Numbers do not get below 0.
      def increment(name, amount = 1, options = nil)
        options = merged_options(options)
        instrument(:increment, name, amount: amount) do
          count(normalize_key(name, options), amount, options)
        end
      end

      # Subtracts from a number that was written with `raw: true`, down to 0.
      def decrement(name, amount = 1, options = nil)
        options = merged_options(options)
        instrument(:decrement, name, amount: amount) do
          count(normalize_key(name, options), -amount, options)
        end
      end

      # Removes the entries of this cache, or those of its `namespace`. Pages and sessions stay.
      def clear(options = nil)
        namespace = merged_options(options)[:namespace]
        namespace = namespace.call if namespace.respond_to?(:call)
        prefix = namespace ? escape("#{namespace}:") : ""
        noted(nil) { @store.purge(prefixes: [prefix]) }
      end

      # Removes all items that have one of the tags, also pages and items of other programs. Returns
      # for how many tags there was an item, or nil if the store is away.
      def purge(tags:)
        noted(nil) { @store.purge(tags: tags) }
      end

      private

      def in_rails?
        defined?(::Rails.application)
      end

      # Rails knows its secret later than it makes its cache.
      def signature_key
        @signature_key ||= ::Kirin::Store::SignedEntry.key(::Rails.application&.secret_key_base)
      end

      def read_entry(key, **options)
        deserialize_entry(read_serialized_entry(key, **options))
      end

      def write_entry(key, entry, **options)
        write_serialized_entry(key, serialize_entry(entry, **options), **options)
      end

      # Rails 7.0 and later have a local cache of these.
      def read_serialized_entry(key, **_options)
        verified(key, noted(nil) { @store.get(key) })
      end

      def write_serialized_entry(key, payload, unless_exist: false, tags: [], **options)
        value = signed(key, payload)
        noted(false) do
          @store.public_send(unless_exist ? :add : :set, key, value, ttl(**options), tags: tags)
        end
      end

      def read_multi_entries(names, **options)
        key_of = names.to_h { |name| [normalize_key(name, options), name] }
        found = noted({}) { @store.get_multi(key_of.keys) }
        found.each_with_object({}) do |(key, value), results|
          entry = deserialize_entry(verified(key, value))
          name = key_of[key]
          next if entry.nil? || entry.expired?

          version = normalize_version(name, options)
          results[name] = entry.value unless entry.mismatched?(version)
        end
      end

      def delete_entry(key, **_options)
        noted(false) { @store.delete(key) }
      end

      def delete_multi_entries(keys, **_options)
        noted(0) { @store.purge(keys: keys) }
      end

      # Entries are of another class than raw values. So a reader need not say which it expects.
      def serialize_entry(entry, raw: false, **options)
        return entry.value.to_s if raw

        # Rails 6.1 takes no options.
        takes_options = Store.instance_method(:serialize_entry).parameters.any?(%i[keyrest options])
        payload = takes_options ? super(entry, **options) : super(entry)
        ::Kirin::Store::SignedEntry.new(payload)
      end

      def deserialize_entry(payload, **_options)
        case payload
        when nil then nil
        when ::Kirin::Store::SignedEntry then super(payload.to_str)
        else Entry.new(payload, compress: false)
        end
      end

      def signed(key, payload)
        payload.is_a?(::Kirin::Store::SignedEntry) ? payload.sign(signature_key, key) : payload
      end

      def verified(key, value)
        case value
        when ::Kirin::Store::SignedEntry then value.verified(signature_key, key)
        when nil, String then value
        else value.to_s
        end
      end

      # Returns the key as the store takes it.
      def normalize_key(key, options = nil)
        key = super
        return key unless key

        key = escape(key)
        return key if key.bytesize <= KEY_BYTES

        digest = ActiveSupport::Digest.hexdigest(key)
        "#{key.byteslice(0, KEY_BYTES - DIGEST_BYTES)}:#{digest}"
      end

      def escape(text)
        text.b.gsub(BAD_IN_KEY) { |byte| format("%%%02X", byte.getbyte(0)) }
      end

      # Returns the time to live of an item. An entry knows its own end, and may be read after it.
      def ttl(expires_in: nil, race_condition_ttl: nil, raw: false, **_options)
        return nil if expires_in.nil?

        seconds = expires_in.to_f
        return -1 unless seconds.positive?

        race = race_condition_ttl.to_f
        race.positive? && !raw ? seconds + [race, RACE_SECONDS].max : seconds
      end

      def count(key, amount, options)
        noted(nil) do
          ttl = ttl(expires_in: options[:expires_in], raw: true)
          if amount.negative?
            @store.decr(key, -amount, initial: 0, ttl: ttl)
          else
            @store.incr(key, amount, initial: amount, ttl: ttl)
          end
        end
      end

      # Returns what the block returns, or `fallback` if the store fails.
      def noted(fallback)
        yield
      rescue ::Kirin::Store::InvalidArgument
        # Otherwise a value that can never be stored would be made at every request.
        raise
      rescue ::Kirin::Store::Error => e
        now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        if logger && (@logged.nil? || now - @logged >= LOG_SECONDS)
          @logged = now
          logger.error("kirin: cache: #{e.message}")
        end
        fallback
      end
    end
  end
end
