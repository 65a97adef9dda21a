"""Kirin's store for Python: pages, fragments, sessions and other data.

    from kirin.store import Store

    store = Store()                                  # the address is in KIRIN_STORE
    store.set_page("/memo/7", "text/html; charset=UTF-8", html, ttl=3600, tags=["memo-7"])
    store.purge(keys=["/"], prefixes=["/recent/"], tags=["memo-7"])
    rows = store.get_or_set("fresh", read_rows, 60)

`kirin.store.django`, `kirin.store.django_sessions`, `kirin.store.flask` and `kirin.store.starlette`
use it for the frameworks of these names.
"""
from kirin.store.site import current_site, in_site

__all__ = ["Store", "StoreError", "current_site", "in_site"]


def __getattr__(name):
    # A worker imports this package for the site of a request. Applications that use no store must
    # not pay for the client.
    if name == "Store":
        from kirin.store.client import Store

        return Store
    if name == "StoreError":
        from kirin.store.failure import StoreError

        return StoreError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
