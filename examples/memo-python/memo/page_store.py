"""Keeps the public pages in the store correct.

Kirin answers a request with the store item whose key is the request's path. So there is one rule:
an item may be missing (then the application answers), but it must never be older than the database.
This order of events would break the rule: process A reads the memos and renders "/". B adds a memo
and removes "/" from the store. A stores its "/". Now the old page is served for good. A memcached
"cas" does not help A, because for a missing page there is no cas number. So:

- Every public page has a version: the number of public memos from which it was rendered. (`Memos`
  numbers them without a gap, and nothing else changes a public page.) It comes from the same
  database snapshot as the page.
- All writes to the store happen inside the database's write lock (BEGIN IMMEDIATE). So they come
  one after the other, and no process commits between them. `push` stores a page only if its version
  is still the current one. It drops a stale page.
- A process that adds a memo commits first and then settles (a push starts with that): it removes
  every page that the memo has changed. So a push before the commit is removed, and a push after it
  is refused by its version.

Two cases are left: the time between commit and settle (the writer has no response yet), and a
process that dies or cannot reach the store in this time. For these the store has the LEDGER item:
the last public memo up to which its pages are settled. Settling starts from there, not from the
process's own memo. So every settle and every push repairs the state that another process left. If
the ledger is missing or foreign (store restarted, restored from an old snapshot, another database,
other templates), no page can be trusted. Then all pages that may be stored are removed.
"""
import logging
import time

LEDGER = "memo/ledger"
PAGE_TYPE = "text/html; charset=UTF-8"
RETRY_AFTER_SECS = 1
# A last protection. One case is left: a "set" that this side gave up after its time limit, and that
# a stalled store carries out after another process's settling.
PAGE_LIFETIME_SECS = 600

log = logging.getLogger(__name__)


class PageStore:
    """The public pages in the store.

    `pages` says what belongs there: `identity()` of pages that may share a store, `fragments()` as
    a dict of key to HTML, and `keys_changed(number)` since there were so many public memos (None:
    all keys). It is asked under the lock.
    """

    def __init__(self, store, database, memos, pages):
        self._store = store
        self._database = database
        self._memos = memos
        self._pages = pages
        self._is_settled = False
        self._next_try = 0.0

    @property
    def is_used(self):
        """Whether there is a store."""
        return self._store.is_used

    def catch_up(self):
        """Settles what this process could not settle yet. Runs before a request is answered.

        It is also the first action of a new process. So the next worker repairs the state that a
        killed worker left between commit and settle.
        """
        if self.is_used and not self._is_settled and time.monotonic() >= self._next_try:
            self._under_lock(lambda current: True)

    def push(self, path, html, version):
        """Stores a page from `version` public memos, unless it is no longer the newest.

        Returns whether it is stored.
        """
        if not self.is_used:
            return False
        return self._under_lock(
            lambda current: current == version
            and self._store.client.set_page(path, PAGE_TYPE, html, PAGE_LIFETIME_SECS) is True
        )

    def _under_lock(self, action):
        """Returns `action(number of public memos)`, called under the lock, with a settled store.

        Returns False if the store could not be settled.
        """
        try:
            self._is_settled = False
            with self._database.exclusively():
                current = self._memos.public_total()
                self._is_settled = self._settle_to(current)
                if self._is_settled:
                    return action(current)
        except Exception:
            # The page is only a copy. A failure to store it must not affect the response.
            log.exception("a page is not stored")
            self._is_settled = False
        self._next_try = time.monotonic() + RETRY_AFTER_SECS
        return False

    def _settle_to(self, current):
        client = self._store.client
        identity = self._pages.identity()
        have = client.get_multi([LEDGER, *self._pages.FRAGMENT_KEYS])
        if client.error:
            return False
        settled = _number_in(have.get(LEDGER), identity)
        if settled is not None and settled > current:
            settled = None
        is_new = settled != current

        # Fragments are replaced and never removed, because the store may have a page that names
        # them at any time.
        if is_new or not all(key in have for key in self._pages.FRAGMENT_KEYS):
            fragments = self._pages.fragments()
            if client.set_multi({key: html.encode() for key, html in fragments.items()}):
                return False
        if not is_new:
            return True
        if client.purge(keys=self._pages.keys_changed(settled)) is None:
            return False
        return client.set(LEDGER, f"{identity} {current}".encode()) is True


def _number_in(ledger, identity):
    """Returns the number of memos in a ledger, or None if it is not one of this identity."""
    if not isinstance(ledger, bytes):
        return None
    name, _, number = ledger.partition(b" ")
    return int(number) if name == identity.encode() and number.isdigit() else None
