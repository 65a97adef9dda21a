"""A cache backend of Django that keeps its items in Kirin's store.

    CACHES = {"default": {"BACKEND": "kirin.store.django.KirinCache"}}

`LOCATION` is the address. Without it, it is the setting `KIRIN_STORE`, and without that the
environment variable of this name. Besides Django's own keys in `OPTIONS` there are:

`serializer`
    How values are stored that are neither bytes, str nor int. Default: "json". With "pickle", or
    the path of an object or class with `dumps` and `loads`, all values that it takes can be stored,
    among them the responses of Django's cache middleware. Whoever can write into the store can run
    code in a process that reads pickles.
`namespace`
    The start of every key. Default: "django:".
`timeout`, `site`
    See `kirin.store.Store`.

`set`, `add`, `set_many` and `get_or_set` take `tags`, and `purge` removes the items that have them.
Tags are shared with pages and with everything else in the store.
"""
import inspect
import time

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.cache.backends.base import (
    DEFAULT_TIMEOUT,
    BaseCache,
    InvalidCacheKey,
    default_key_func,
)
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from kirin.store.client import Store
from kirin.store.failure import InvalidArgument
from kirin.store.session import logger

NAMESPACE = "django:"

OPTIONS = ("serializer", "namespace", "timeout", "site", "MAX_ENTRIES", "CULL_FREQUENCY")

# Seconds between two lines in the log about a store that is away.
LOG_SECONDS = 10


class KirinCache(BaseCache):
    """The cache of Django. Its methods do not raise an exception because the store is away."""

    _logged = 0.0

    def __init__(self, location, params):
        super().__init__(params)
        options = params.get("OPTIONS") or {}
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise ImproperlyConfigured(f"KirinCache has no option {', '.join(unknown)}")
        self._namespace = options.get("namespace", NAMESPACE)
        try:
            self._store = Store(
                location or getattr(settings, "KIRIN_STORE", None),
                timeout=options.get("timeout", 1.0),
                site=options.get("site"),
                namespace=self._namespace,
                serializer=serializer_of(options.get("serializer", "json")),
            )
        except ValueError as error:
            raise ImproperlyConfigured(f"KirinCache: {error}") from error

    def get_backend_timeout(self, timeout=DEFAULT_TIMEOUT):
        """Returns the time to live as `Store` takes it, where None has no end."""
        if timeout is DEFAULT_TIMEOUT:
            timeout = self.default_timeout
        if timeout is None:
            return None
        # An item with the time 0 has ended. In the protocol, 0 has no end.
        return timeout if timeout > 0 else -1

    def validate_key(self, key):
        """Raises `InvalidCacheKey` for a key that the store does not take."""
        try:
            self._store.check_key(key)
        except InvalidArgument as error:
            raise InvalidCacheKey(f"{error}: {key!r}") from error

    def make_and_validate_key(self, key, version=None):
        """Returns the complete key. Before Django 4.0, as in Debian 12, there is no such method."""
        key = self.make_key(key, version=version)
        self.validate_key(key)
        return key

    def get(self, key, default=None, version=None):
        key = self.make_and_validate_key(key, version=version)
        return self._noted(self._store.get(key, default))

    def get_many(self, keys, version=None):
        key_of = {self.make_and_validate_key(key, version=version): key for key in keys}
        found = self._noted(self._store.get_multi(key_of))
        return {key_of[name]: value for name, value in found.items()}

    def set(self, key, value, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        key = self.make_and_validate_key(key, version=version)
        self._noted(self._store.set(key, value, self.get_backend_timeout(timeout), tags=tags))

    def add(self, key, value, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        key = self.make_and_validate_key(key, version=version)
        ttl = self.get_backend_timeout(timeout)
        return bool(self._noted(self._store.add(key, value, ttl, tags=tags)))

    def get_or_set(self, key, default, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        """Returns the value of a key, and stores `default` if there is none.

        After a soft purge one caller makes the value again, and all others get the old one.
        """
        key = self.make_and_validate_key(key, version=version)
        ttl = self.get_backend_timeout(timeout)
        return self._noted(self._store.get_or_set(key, default, ttl, tags=tags))

    def set_many(self, data, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        key_of = {self.make_and_validate_key(key, version=version): key for key in data}
        values = {name: data[key] for name, key in key_of.items()}
        failed = self._store.set_multi(values, self.get_backend_timeout(timeout), tags=tags)
        return [key_of[name] for name in self._noted(failed)]

    def touch(self, key, timeout=DEFAULT_TIMEOUT, version=None):
        key = self.make_and_validate_key(key, version=version)
        return bool(self._noted(self._store.touch(key, self.get_backend_timeout(timeout))))

    def delete(self, key, version=None):
        key = self.make_and_validate_key(key, version=version)
        return bool(self._noted(self._store.delete(key)))

    def delete_many(self, keys, version=None):
        names = [self.make_and_validate_key(key, version=version) for key in keys]
        self._noted(self._store.purge(keys=names))

    def incr(self, key, delta=1, version=None):
        """Adds to a number, which does not get below 0. No count of another process is lost."""
        key = self.make_and_validate_key(key, version=version)
        if delta < 0:
            number = self._store.decr(key, -delta)
        else:
            number = self._store.incr(key, delta)
        if number is False:
            raise ValueError(f"Key '{key}' not found")
        if number is None:
            error = self._store.error
            if isinstance(self._store.failure, InvalidArgument) or "non-numeric" in error:
                raise TypeError(f"Key '{key}': {error}")
            raise ValueError(f"Key '{key}' is not counted: {error}")
        return number

    def clear(self):
        """Removes the items with the `KEY_PREFIX` of this cache, and nothing else in the store.

        With a `KEY_FUNCTION` of your own, it removes the items of all caches with the same
        `namespace`.
        """
        prefix = f"{self.key_prefix}:" if self.key_func is default_key_func else ""
        # The namespace comes before it.
        self._noted(self._store.purge(prefixes=[prefix]))

    def purge(self, *, tags=(), soft=False):
        """Removes all items that have one of the tags, also pages and items of other programs.

        With `soft` they become stale (docs/purge.md). Returns for how many tags there was an item,
        or None if the store is away.
        """
        return self._noted(self._store.purge(tags=tags, soft=soft))

    def close(self, **kwargs):
        """Does nothing: the connections are for the next request, too."""

    async def aset(self, key, value, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        return await sync_to_async(self.set)(key, value, timeout, version, tags)

    async def aadd(self, key, value, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        return await sync_to_async(self.add)(key, value, timeout, version, tags)

    async def aget_or_set(self, key, default, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        return await sync_to_async(self.get_or_set)(key, default, timeout, version, tags)

    async def aset_many(self, data, timeout=DEFAULT_TIMEOUT, version=None, tags=()):
        return await sync_to_async(self.set_many)(data, timeout, version, tags)

    async def apurge(self, *, tags=(), soft=False):
        return await sync_to_async(self.purge)(tags=tags, soft=soft)

    def _noted(self, result):
        """Returns a result. Logs a failure of the store, and raises one of the application."""
        failure = self._store.failure
        if failure is None:
            return result
        if isinstance(failure, InvalidArgument):
            # Otherwise a value that can never be stored would be made at every request.
            raise failure.__cause__ or ValueError(str(failure))
        now = time.monotonic()
        if not KirinCache._logged or now - KirinCache._logged >= LOG_SECONDS:
            KirinCache._logged = now
            logger.warning("cache: %s", failure)
        return result


def serializer_of(setting):
    """Returns the serializer for a setting: "json", "pickle", a path, an object or a class."""
    if setting is None or setting == "json":
        return None
    if setting == "pickle":
        import pickle

        return pickle
    if isinstance(setting, str):
        setting = import_string(setting)
    return setting() if inspect.isclass(setting) else setting
