"""A client of Kirin's store. It also works with any memcached that gets no tags and prefixes."""
import math
import os
import threading

from kirin.store import conversations, pages
from kirin.store.connection import NO_REPLY
from kirin.store.endpoint import endpoint
from kirin.store.failure import InvalidArgument, StoreError, without_frames
from kirin.store.names import cached_name, expiry, key_name, listed, tag_name, tag_names
from kirin.store.site import check_site, current_site
from kirin.store.values import FLAG_BYTES, Values

# The most keys of one line, which may have a megabyte.
KEYS_A_LINE = 1000

# The most bytes of values that are gathered before they are sent.
BYTES_AT_ONCE = 1024 * 1024

_MODES = {"set": b"S", "add": b"E", "replace": b"R", "cas": b"S"}


class Store:
    """Items of Kirin's store.

    `servers` is the address, `unix:PATH` or `HOST:PORT`. The default is `KIRIN_STORE` in the
    environment, which is read at the first use. `timeout` is the time limit in seconds for
    connecting and for each wait. After a timeout no command is tried for a second. `site` is the
    name of a site. All keys and tags are then those of this site. The default is the site of the
    request in progress, and "" means no site. `namespace` is a prefix for every key, but not for
    tags. `serializer` is an object with `dumps` and `loads`, for values that are neither bytes, str
    nor int. The default is JSON. Give it `pickle` only if you trust every program that can write
    into the store.

    One object is for all threads, and for all processes that are forked. Each command takes a
    connection for itself. Connections are made when they are needed.

    **No method raises an exception because of the store, a key or a value.** A result of True means
    that it is done, and False means that the store could do nothing (`add` of an existing item,
    `delete` of a missing one). None is a failure, and `error` says which. Of a retrieval, None may
    also mean that there is no item; then `error` is None. No command is sent twice, so `incr`
    counts at most once.

    A time to live, `ttl`, is a number of seconds and always a duration. Without it, or with 0, an
    item does not expire. An item has at most 16 `tags` of 64 bytes. Keys have at most 250 bytes
    with the site and the namespace, and no blanks and control characters.
    """

    def __init__(self, servers=None, *, timeout=1.0, site=None, namespace="", serializer=None):
        if isinstance(servers, (list, tuple)):
            if len(servers) != 1:
                raise ValueError("a store has one address: tags and purges are those of one store")
            servers = servers[0]
        if servers is not None and not isinstance(servers, str):
            raise ValueError(f"an address is unix:PATH or HOST:PORT, not {servers!r}")
        if not isinstance(timeout, (int, float)) or not 0 < timeout < math.inf:
            raise ValueError("timeout is a number of seconds above 0")
        if site is not None:
            check_site(site)
        self._address = servers
        self._timeout = timeout
        self._site = site
        self._namespace = namespace.encode("utf-8")
        self._values = Values(serializer)
        self._of_thread = threading.local()

    @property
    def error(self):
        """Why the last call of this thread has failed, or None if it has not."""
        failure = self.failure
        return None if failure is None else str(failure)

    @property
    def failure(self):
        """The `StoreError` of the last call of this thread, or None. `error` is its text."""
        return getattr(self._of_thread, "failure", None)

    def check_key(self, key):
        """Raises `InvalidArgument` for a key that no item can have at the present site."""
        self._name(key)

    def fingerprint(self, value):
        """Returns an object that is equal for data that is stored alike, and differs otherwise."""
        return self._values.fingerprint(value)

    def close(self):
        """Closes the idle connections to this address. The next command connects again."""
        try:
            self._endpoint().close()
        except StoreError:
            return

    # ------------------------------------------------------------------ reading

    def get(self, key, default=None):
        """Returns the value of an item, or `default` if there is none."""
        found = self._guarded(self._get, b"get", key)
        return found[1] if found else default

    def gets(self, key):
        """Returns (number for `cas`, value), or None if there is no item."""
        return self._guarded(self._get, b"gets", key)

    def get_multi(self, keys):
        """Returns a dict of the items that exist, by the keys that were given."""
        found = {}
        self._guarded(self._get_multi, keys, found)
        return found

    def get_or_set(self, key, default, ttl=None, *, tags=()):
        """Returns the value of an item. If there is none, stores `default` and returns it.

        `default` is a value, or a function without arguments that returns one. Its exceptions are
        those of this method. If the store is away, its value is returned all the same. After a soft
        purge one caller makes the value again, and all others get the old one until then.
        """
        found = self._guarded(self._meta_get, key)
        if found:
            value, must_renew = found
            if not must_renew:
                return value
        failure = self.failure
        try:
            value = default() if callable(default) else default
        except BaseException:
            if found:
                # Otherwise no other client would renew the item.
                self._guarded(self._mark_stale, key)
            raise
        if failure is None:
            (self.set if found else self.add)(key, value, ttl, tags=tags)
        else:
            self._of_thread.failure = failure
        return value

    # ------------------------------------------------------------------ writing

    def set(self, key, value, ttl=None, *, tags=()):
        """Stores an item."""
        return self._guarded(self._store, "set", key, value, ttl, tags)

    def add(self, key, value, ttl=None, *, tags=()):
        """Stores an item if there is none with this key."""
        return self._guarded(self._store, "add", key, value, ttl, tags)

    def replace(self, key, value, ttl=None, *, tags=()):
        """Stores an item if there is one with this key."""
        return self._guarded(self._store, "replace", key, value, ttl, tags)

    def cas(self, key, unique, value, ttl=None, *, tags=()):
        """Stores an item if it is still the one for which `gets` has returned `unique`.

        Returns False if it has been stored again, deleted or evicted.
        """
        return self._guarded(self._store, "cas", key, value, ttl, tags, unique)

    def set_multi(self, values, ttl=None, *, tags=()):
        """Stores the items of a dict. Returns the list of the keys that were not stored.

        If this list has elements, `error` has the first reason.
        """
        failed = []
        self._of_thread.failure = without_frames(self._set_multi(values, ttl, tags, failed))
        return failed

    def delete(self, key):
        """Deletes an item. Cached responses for the path `key` stay; see `purge`."""
        return self._guarded(self._delete, key)

    def touch(self, key, ttl=None):
        """Gives an item a new time to live."""
        return self._guarded(self._touch, key, ttl)

    def incr(self, key, by=1):
        """Adds to a number. Returns the new number, or False (`is False`) if there is no item."""
        return self._guarded(self._count, b"incr", key, by)

    def decr(self, key, by=1):
        """Subtracts from a number, down to 0. Returns what `incr` returns."""
        return self._guarded(self._count, b"decr", key, by)

    # ------------------------------------------------------------------ pages

    def set_page(self, target, media_type, body=b"", ttl=None, *, tags=()):
        """Stores a page for a request target, which Kirin answers without a worker.

        `target` is path and query as the client sends them. `body` is bytes, str or a list of both.
        In place of the media type there may be a complete response, `(status, headers, body)`;
        then there is no other body.
        """
        if isinstance(media_type, (tuple, list)):
            return self._guarded(self._set_response, target, media_type, body, ttl, tags)
        return self._guarded(self._set_page, target, media_type, body, ttl, tags)

    def set_response(self, target, status, headers, body, ttl=None, *, tags=()):
        """Stores a page with a status and headers of its own.

        Fields of the connection and of the framing are left out.
        """
        return self.set_page(target, (status, headers, body), ttl=ttl, tags=tags)

    # ------------------------------------------------------------------ purging

    def purge(self, keys=(), prefixes=(), tags=(), soft=False):
        """Deletes items by their keys, by prefixes of their keys and by their tags.

        A single name needs no list. Keys and prefixes that start with `/` also purge the cached
        responses of routes. With `soft` the items stay and are stale, so that Kirin still serves
        them while it renews them (docs/purge.md).

        Returns for how many of the names there was an item (a prefix always counts), or None. Call
        this after a change is committed: until then a request may store the old row.
        """
        return self._guarded(self._purge, keys, prefixes, tags, soft)

    # ------------------------------------------------------------------ names

    def _site_prefix(self):
        site = self._site if self._site is not None else current_site()
        return f"{site}:".encode("utf-8") if site else b""

    def _name(self, key):
        return key_name(self._site_prefix() + self._namespace, key)

    # ------------------------------------------------------------------ conversations

    def _endpoint(self):
        address = self._address
        if address is None:
            address = os.environ.get("KIRIN_STORE")
            if not address:
                raise StoreError("no address: KIRIN_STORE is not set")
        return endpoint(address, self._timeout)

    def _converse(self, conversation, *arguments):
        return self._endpoint().converse(conversation, *arguments)

    def _guarded(self, call, *arguments):
        """Runs code that may fail. No failure of the store ends the application."""
        try:
            result = call(*arguments)
        except StoreError as error:
            self._of_thread.failure = without_frames(error)
            return None
        self._of_thread.failure = None
        return result

    def _get(self, command, key):
        line = b"%b %b\r\n" % (command, self._name(key))
        for _, flags, unique, data in self._converse(conversations.retrieve, [line]):
            return unique, self._values.decode(data, flags)
        return None

    def _get_multi(self, keys, found):
        key_of = {self._name(key): key for key in listed(keys, "keys")}
        names = list(key_of)
        lines = [
            b"get %b\r\n" % b" ".join(names[i:i + KEYS_A_LINE])
            for i in range(0, len(names), KEYS_A_LINE)
        ]
        if not lines:
            return
        failure = None
        for name, flags, _, data in self._converse(conversations.retrieve, lines):
            if name not in key_of:
                raise StoreError(NO_REPLY)
            try:
                found[key_of[name]] = self._values.decode(data, flags)
            except StoreError as error:
                # One item that cannot be read does not hide the others.
                failure = failure or error
        if failure:
            raise failure

    def _meta_get(self, key):
        """Returns (value, whether this client must renew it), or None if there is no item."""
        found = self._converse(conversations.meta_retrieve, b"mg %b v f\r\n" % self._name(key))
        if not found:
            return None
        data, flags, must_renew = found
        return self._values.decode(data, flags), must_renew

    def _store(self, command, key, value, ttl, tags, unique=None):
        data, flags = self._values.encode(value)
        return self._put(command, key, data, flags, ttl, tags, unique)

    def _put(self, command, key, data, flags, ttl, tags, unique=None):
        sent, expected = self._storage(command, key, data, flags, ttl, tags, unique)
        return self._converse(conversations.carry_out, sent, expected)

    def _storage(self, command, key, data, flags, ttl, tags, unique=None):
        """Returns the bytes of a storage command, and the reply to its success."""
        name, until = self._name(key), expiry(ttl)
        if command == "cas" and (
            isinstance(unique, bool) or not isinstance(unique, int) or not 0 <= unique < 2**64
        ):
            raise InvalidArgument(f"cas takes a number that gets has returned, not {unique!r}")
        if tags:
            tags = b",".join(tag_names(self._site_prefix(), tags))
        if tags:
            condition = b" C%d" % unique if command == "cas" else b""
            line = b"ms %b %d T%d F%d M%b%b Ptags=%b\r\n" % (
                name, len(data), until, flags, _MODES[command], condition, tags
            )
            return b"%b%b\r\n" % (line, data), b"HD"
        condition = b" %d" % unique if command == "cas" else b""
        line = b"%b %b %d %d %d%b\r\n" % (
            command.encode("ascii"), name, flags, until, len(data), condition
        )
        return b"%b%b\r\n" % (line, data), b"STORED"

    def _set_multi(self, values, ttl, tags, failed):
        """Stores items, and adds the keys of those that it could not store to `failed`.

        Returns the first failure, or None.
        """
        first = None
        waiting, size = [], 0
        try:
            # It may be an iterator, and each item needs all of them.
            tags = listed(tags, "tags")
        except InvalidArgument as error:
            failed.extend(values)
            return error

        def send():
            nonlocal first, waiting, size
            verdicts = []
            try:
                self._converse(conversations.store_many, waiting, verdicts)
            except StoreError as error:
                first = first or error
            for (key, _, _), verdict in zip(waiting, verdicts + [None] * len(waiting)):
                if verdict is not True:
                    failed.append(key)
                    if verdict is not None:
                        first = first or verdict
            waiting, size = [], 0

        for key, value in values.items():
            try:
                data, flags = self._values.encode(value)
                sent, expected = self._storage("set", key, data, flags, ttl, tags)
            except InvalidArgument as error:
                failed.append(key)
                first = first or error
                continue
            waiting.append((key, sent, expected))
            size += len(sent)
            if len(waiting) >= conversations.COMMANDS_AT_ONCE or size >= BYTES_AT_ONCE:
                send()
        if waiting:
            send()
        return first

    def _delete(self, key):
        line = b"delete %b\r\n" % self._name(key)
        return self._converse(conversations.carry_out, line, b"DELETED")

    def _mark_stale(self, key):
        return self._converse(conversations.carry_out, b"md %b I\r\n" % self._name(key), b"HD")

    def _touch(self, key, ttl):
        line = b"touch %b %d\r\n" % (self._name(key), expiry(ttl))
        return self._converse(conversations.carry_out, line, b"TOUCHED")

    def _count(self, command, key, by):
        if isinstance(by, bool) or not isinstance(by, int) or not 0 <= by < 2**64:
            raise InvalidArgument(f"a number to count by is whole and not below 0: {by!r}")
        line = b"%b %b %d\r\n" % (command, self._name(key), by)
        return self._converse(conversations.count, line)

    def _set_page(self, target, media_type, body, ttl, tags):
        return self._put("set", target, pages.page(media_type, body), FLAG_BYTES, ttl, tags)

    def _set_response(self, target, response, body, ttl, tags):
        if len(response) != 3 or body:
            raise InvalidArgument("a complete response is (status, headers, body)")
        return self._put("set", target, pages.response(*response), FLAG_BYTES, ttl, tags)

    def _purge(self, keys, prefixes, tags, soft):
        end = b" I\r\n" if soft else b"\r\n"
        purges = []
        for names, kind, is_prefix in ((keys, b"", False), (prefixes, b" Pprefix", True)):
            for key in listed(names, "keys and prefixes"):
                name = self._name(key)
                commands = [name + kind]
                cached = cached_name(name, is_prefix)
                if cached:
                    commands.append(cached)
                purges.append([b"md %b%b" % (command, end) for command in commands])
        prefix = self._site_prefix()
        for tag in listed(tags, "tags"):
            purges.append([b"md %b Ptag%b" % (tag_name(prefix, tag), end)])
        return self._converse(conversations.purge_all, purges) if purges else 0
