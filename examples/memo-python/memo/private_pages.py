"""Pages that only an author sees: private memos, and the links through them.

The store has the parts from which lua/private_memo.lua makes the same pages, under keys that nobody
can request:

- private/memo/N has the author's id, LF, and the page with comments in place of links and CSRF
  token.
- author/ID/public and author/ID/private have the ids of the author's memos, ascending.

Memos do not change, but the lists do. They are written inside the database's write lock, from
committed data only. A process that adds a memo deletes them inside the lock, before it commits. So
an existing list is correct, and a process may die at any time. `SiteStore` handles a list that
cannot be deleted because the store is away.
"""
import logging

from markupsafe import Markup

from memo import markdown

LIFETIME_SECS = 600
NEIGHBOURS = Markup("<!--# neighbours -->")
CSRF_TOKEN = Markup("<!--# csrf_token -->")

log = logging.getLogger(__name__)


class PrivatePages:
    """The private pages."""

    def __init__(self, *, database, memos, view, store):
        self._database = database
        self._memos = memos
        self._view = view
        self._store = store

    def page(self, memo, csrf_token):
        """Returns the page of a private memo, for its author."""
        html = self._view.render(
            "private_memo.html",
            memo=memo,
            body=Markup(markdown.html(memo["content"])),
            neighbours=NEIGHBOURS,
            session_bar=self._view.render(
                "session_bar.html", user={"name": memo["author"]}, csrf_token=CSRF_TOKEN
            ),
        )
        self._keep(memo, {f"private/memo/{memo['id']}": f"{memo['user_id']}\n{html}"})
        return html.replace(NEIGHBOURS, self._links(memo)).replace(CSRF_TOKEN, csrf_token)

    def neighbours(self, memo):
        """Returns the links of any memo as its author sees them."""
        self._keep(memo, {})
        return self._links(memo)

    def _links(self, memo):
        return self._view.render(
            "neighbours.html",
            memo=memo, neighbours=self._memos.all_neighbours(memo), is_own=True,
        )

    def author_writes(self, user_id):
        """Deletes the lists of an author. Runs inside the transaction that adds a memo."""
        self._store.delete_surely(LIFETIME_SECS, _lists(user_id))

    def keys_in_store(self):
        """Returns all keys that may be in the store."""
        pages = [f"private/memo/{memo_id}" for memo_id in self._memos.private_ids()]
        lists = [key for user_id in self._memos.author_ids() for key in _lists(user_id)]
        return pages + lists

    def _keep(self, memo, items):
        """Stores the given items and the lists of the memo's author, those that are missing."""
        if not self._store.is_used:
            return
        client = self._store.client
        lists = _lists(memo["user_id"])
        keys = [*lists, *items]
        have = client.get_multi(keys)
        if len(have) == len(keys):
            return
        try:
            with self._database.exclusively():
                for key, ids in zip(lists, self._memos.ids_of_author(memo["user_id"])):
                    items[key] = " ".join(map(str, ids))
                missing = {key: items[key].encode() for key in keys if key not in have}
                client.set_multi(missing, LIFETIME_SECS)
        except Exception:
            # They are only copies. A failure to store them must not affect the response.
            log.exception("a private page is not stored")


def _lists(user_id):
    return [f"author/{user_id}/public", f"author/{user_id}/private"]
