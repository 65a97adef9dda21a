# frozen_string_literal: true

require_relative "store/conversations"
require_relative "store/endpoint"
require_relative "store/error"
require_relative "store/names"
require_relative "store/pages"
require_relative "store/site"
require_relative "store/values"

module Kirin
  # Items of Kirin's store. It also works with any memcached that gets no tags and prefixes.
  #
  #   store = Kirin::Store.default                     # the address is in KIRIN_STORE
  #   store.set_page("/memo/7", "text/html; charset=UTF-8", html, 3600, tags: ["memo-7"])
  #   store.purge(keys: ["/"], prefixes: ["/recent/"], tags: ["memo-7"])
  #   rows = store.fetch("fresh", 60) { read_rows }
  #
  # One object is for all threads, and for all processes that are forked. Each command takes a
  # connection for itself. Connections are made when they are needed.
  #
  # A method raises `Kirin::Store::Error` if the store is away, does not answer within the time
  # limit or refuses a command: `NoAnswer` after a time limit, and `InvalidArgument` for a key, a
  # value or an option that cannot be sent. No command is sent twice, so `incr` counts at most once.
  #
  # A time to live, `ttl`, is a number of seconds and always a duration. Without it, or with 0, an
  # item does not expire. An item has at most 16 `tags` of 64 bytes. Keys have at most 250 bytes
  # with the site and the namespace, and no blanks and control characters.
  class Store
    # The most keys of one line, which may have a megabyte.
    KEYS_A_LINE = 1000

    # How often `incr` with `initial` tries to make an item that others make and remove.
    COUNTS = 5

    MODES = { "set" => "S", "add" => "E", "replace" => "R", "cas" => "S" }.freeze

    # Returns a store with the default options, which the whole process shares.
    def self.default
      @default ||= new
    end

    # Returns the name of the site whose items are used, or "" for none.
    def self.current_site
      Site.current
    end

    # Makes a block of code use the items of a site: `Kirin::Store.in_site("example.org") { … }`.
    def self.in_site(name, &block)
      Site.use(name, &block)
    end

    # `address` is `unix:PATH` or `HOST:PORT`. The default is KIRIN_STORE in the environment, which
    # is read at the first use. `timeout` is the time limit in seconds for connecting and for each
    # wait. After a timeout no command is tried for a second. `site` is the name of a site. All keys
    # and tags are then those of this site. The default is the site of the request in progress, and
    # "" means no site. `namespace` is a prefix for every key, but not for tags. `serializer` is an
    # object with `dump` and `load`, for values that are neither String nor Integer. The default is
    # JSON. Give it Marshal only if you trust every program that can write into the store.
    def initialize(address = nil, timeout: 1.0, site: nil, namespace: "", serializer: nil)
      unless address.nil? || address.is_a?(String)
        raise ArgumentError, "an address is unix:PATH or HOST:PORT, not #{address.inspect}"
      end
      unless timeout.is_a?(Numeric) && timeout.real? && timeout.positive? && timeout.to_f.finite?
        raise ArgumentError, "timeout is a number of seconds above 0"
      end

      Site.check(site) unless site.nil?
      @address = address
      @timeout = timeout
      @site = site
      @namespace = namespace.b
      @values = Values.new(serializer)
    end

    # Raises `InvalidArgument` for a key that no item can have at the present site.
    def check_key(key)
      name(key)
      nil
    end

    # Closes the idle connections to this address. The next command connects again.
    def close
      endpoint.close
    end

    # ---------------------------------------------------------------- reading

    # Returns the value of an item, or nil if there is none.
    def get(key)
      found = retrieve("get", key)
      found && found[1]
    end

    # Returns [number for `set_cas`, value], or nil if there is no item.
    def gets(key)
      retrieve("gets", key)
    end

    # Returns a Hash of the items that exist, by the keys that were given.
    def get_multi(*keys)
      key_of = keys.flatten.to_h { |key| [name(key), key] }
      return {} if key_of.empty?

      lines = key_of.keys.each_slice(KEYS_A_LINE).map { |names| "get #{names.join(' ')}\r\n".b }
      found = converse { |connection| Conversations.retrieve(connection, lines) }
      found.to_h do |name, flags, _, data|
        key = key_of.fetch(name) { raise Error, Connection::NO_REPLY }
        [key, @values.decode(data, flags)]
      end
    end

    # Returns the value of an item. If there is none, stores what the block returns, and returns it.
    #
    # If the store is away, the value of the block is returned all the same. Only `InvalidArgument`
    # is raised, and exceptions of the block. After a soft purge one caller makes the value again,
    # and all others get the old one until then.
    def fetch(key, ttl = nil, tags: [])
      line = "mg #{name(key)} v f\r\n".b
      begin
        found = converse { |connection| Conversations.meta_retrieve(connection, line) }
        value = @values.decode(found[0], found[1]) if found
      rescue Error
        return yield
      end
      return value if found && !found[2]

      value = made_again(key, found) { yield }
      begin
        put(found ? "set" : "add", key, *@values.encode(value), ttl, tags)
      rescue InvalidArgument
        raise
      rescue Error
        # The next caller tries again.
      end
      value
    end

    # ---------------------------------------------------------------- writing

    # Stores an item. Returns true.
    def set(key, value, ttl = nil, tags: [])
      put("set", key, *@values.encode(value), ttl, tags)
    end

    # Stores an item if there is none with this key. Returns whether it has done so.
    def add(key, value, ttl = nil, tags: [])
      put("add", key, *@values.encode(value), ttl, tags)
    end

    # Stores an item if there is one with this key. Returns whether it has done so.
    def replace(key, value, ttl = nil, tags: [])
      put("replace", key, *@values.encode(value), ttl, tags)
    end

    # Adds a String to the end of an item, whose time to live and tags stay. Returns whether there
    # was an item.
    def append(key, value)
      data = Names.to_bytes(value, "what is appended")
      command = "append #{name(key)} 0 0 #{data.bytesize}\r\n".b << data << "\r\n"
      carry_out(command, "STORED")
    end

    # Stores the items of a Hash. Returns true. If the store refuses some, the others are stored,
    # and the first reason is raised.
    def set_multi(values, ttl = nil, tags: [])
      commands = values.map { |key, value| storage("set", key, *@values.encode(value), ttl, tags) }
      return true if commands.empty?

      refusal = converse { |connection| Conversations.store_many(connection, commands) }
      raise refusal if refusal

      true
    end

    # Changes an item: calls the block with its value, and stores what the block returns.
    #
    # Returns nil if there is no item, and false if it has been changed, deleted or evicted
    # meanwhile. Then nothing is stored, and the caller may try again.
    def cas(key, ttl = nil, tags: [])
      unique, value = gets(key)
      set_cas(key, unique, yield(value), ttl, tags: tags) if unique
    end

    # Stores an item if it is still the one for which `gets` has returned the number `unique`.
    # Returns whether it has done so.
    def set_cas(key, unique, value, ttl = nil, tags: [])
      unless unique.is_a?(Integer) && unique.between?(0, (2**64) - 1)
        raise InvalidArgument, "cas takes a number that gets has returned, not #{unique.inspect}"
      end

      put("cas", key, *@values.encode(value), ttl, tags, unique)
    end

    # Deletes an item. Cached responses for the path `key` stay; see `purge`. Returns whether there
    # was an item.
    def delete(key)
      carry_out("delete #{name(key)}\r\n".b, "DELETED")
    end

    # Gives an item a new time to live. Returns whether there is one.
    def touch(key, ttl = nil)
      carry_out("touch #{name(key)} #{Names.expiry(ttl)}\r\n".b, "TOUCHED")
    end

    # Adds to a number, and returns the new one. Without an item it returns nil, or stores and
    # returns `initial` with the time to live `ttl`.
    def incr(key, by = 1, initial: nil, ttl: nil)
      count("incr", key, by, initial, ttl)
    end

    # Subtracts from a number, down to 0. Returns what `incr` returns.
    def decr(key, by = 1, initial: nil, ttl: nil)
      count("decr", key, by, initial, ttl)
    end

    # ---------------------------------------------------------------- pages

    # Stores a page for a request target, which Kirin answers without a worker. Returns true.
    #
    # `target` is path and query as the client sends them. `body` is a String, or has `each`.
    def set_page(target, media_type, body, ttl = nil, tags: [])
      put("set", target, Pages.page(media_type, body), Values::FLAG_BYTES, ttl, tags)
    end

    # Stores a page with a status and headers of its own, as an application of Rack returns them.
    # Fields of the connection and of the framing are left out. Returns true.
    def set_response(target, response, ttl = nil, tags: [])
      unless response.is_a?(Array) && response.size == 3
        raise InvalidArgument, "a complete response is [status, headers, body]"
      end

      put("set", target, Pages.response(*response), Values::FLAG_BYTES, ttl, tags)
    end

    # ---------------------------------------------------------------- purging

    # Deletes items by their keys, by prefixes of their keys and by their tags. A single name needs
    # no Array. Keys and prefixes that start with `/` also purge the cached responses of routes.
    # With `soft` the items stay and are stale, so that Kirin still serves them while it renews them
    # (docs/purge.md).
    #
    # Returns for how many of the names there was an item; a prefix always counts. Call this after a
    # change is committed: until then a request may store the old row.
    def purge(keys: [], prefixes: [], tags: [], soft: false)
      finish = soft ? " I\r\n" : "\r\n"
      purges = Array(keys).map { |key| purge_of(name(key), "", false, finish) }
      Array(prefixes).each { |key| purges << purge_of(name(key), " Pprefix", true, finish) }
      Array(tags).each do |tag|
        purges << ["md #{Names.tag_name(site_prefix, tag)} Ptag#{finish}".b]
      end
      return 0 if purges.empty?

      converse { |connection| Conversations.purge_all(connection, purges) }
    end

    private

    def site_prefix
      site = @site || Site.current
      site.empty? ? "".b : "#{site}:".b
    end

    def name(key)
      Names.key_name(site_prefix << @namespace, key)
    end

    def endpoint
      address = @address || ENV.fetch("KIRIN_STORE", "")
      raise Error, "no address: KIRIN_STORE is not set" if @address.nil? && address.empty?

      Endpoint.for(address, @timeout)
    end

    def converse(&conversation)
      endpoint.converse(&conversation)
    end

    def carry_out(command, expected)
      converse { |connection| Conversations.carry_out(connection, command, expected) }
    end

    def retrieve(command, key)
      line = "#{command} #{name(key)}\r\n".b
      found = converse { |connection| Conversations.retrieve(connection, [line]) }
      found.first && [found.first[2], @values.decode(found.first[3], found.first[1])]
    end

    def put(command, key, data, flags, ttl, tags, unique = nil)
      carry_out(*storage(command, key, data, flags, ttl, tags, unique))
    end

    # Returns the bytes of a storage command, and the reply to its success.
    def storage(command, key, data, flags, ttl, tags, unique = nil)
      name = name(key)
      finish = Names.expiry(ttl)
      tags = Names.tag_names(site_prefix, tags)
      if tags.empty?
        line = "#{command} #{name} #{flags} #{finish} #{data.bytesize}#{" #{unique}" if unique}"
      else
        condition = " C#{unique}" if unique
        line = "ms #{name} #{data.bytesize} T#{finish} F#{flags} M#{MODES.fetch(command)}" \
               "#{condition} Ptags=#{tags.join(',')}"
      end
      [line.b << "\r\n" << data.b << "\r\n", tags.empty? ? "STORED" : "HD"]
    end

    # Returns what the block of `fetch` returns. If it raises an exception, marks an item that this
    # caller should have renewed: otherwise no other caller would.
    def made_again(key, found)
      value = yield
      is_done = true
      value
    ensure
      mark_stale(key) if found && !is_done
    end

    def mark_stale(key)
      carry_out("md #{name(key)} I\r\n".b, "HD")
    rescue Error
      false
    end

    def count(command, key, by, initial, ttl)
      unless by.is_a?(Integer) && by.between?(0, (2**64) - 1)
        raise InvalidArgument,
              "a number to count by is whole and not below 0: #{by.inspect}"
      end
      line = "#{command} #{name(key)} #{by}\r\n".b
      COUNTS.times do
        number = converse { |connection| Conversations.count(connection, line) }
        return number if number || initial.nil?
        return initial if add(key, initial, ttl)
      end
      raise Error, "#{command} #{key}: the item comes and goes"
    end

    def purge_of(name, kind, is_prefix, finish)
      names = [name + kind, Names.cached_name(name, is_prefix)].compact
      names.map { |what| "md #{what}#{finish}".b }
    end
  end
end
