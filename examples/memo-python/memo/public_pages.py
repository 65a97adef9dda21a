"""The pages for all visitors, and their way into the store: /, /recent/N and public /memo/N.

A stored page is the same for all visitors. It has comments that Kirin carries out when it serves
the page (server side includes):

- "include KEY" stands for parts that most pages share and every new memo changes. So a new memo
  replaces two small items and leaves thousands of pages unchanged.
- "if" and "echo" of the visitor's session (`SessionItems`) are in the bar at the top and, for the
  links to private neighbours, on a memo's page. "include virtual" asks the application for missing
  parts.

If a page does not go through the store, `_filled` does the same.
"""
import re

from markupsafe import Markup

from memo import markdown
from memo.page_store import PageStore

TOTAL = "fragment/total"
NEWEST = "fragment/newest"
SESSION_BAR = "fragment/session-bar"

LIST = re.compile(r"/recent/([0-9]+)")
MEMO = re.compile(r"/memo/([0-9]+)")
# Only our templates can write such a comment, because "<" in a memo is always escaped.
INCLUDE = re.compile(r"<!--# include (\S+) -->")
FOR_AUTHOR = re.compile(
    r'<!--# if expr="\$session\.user_id = ([0-9]+)" -->.*?<!--# else -->(.*?)<!--# endif -->',
    re.DOTALL,
)


class PublicPages:
    """The public pages. `private_pages` has the links that only an author sees."""

    FRAGMENT_KEYS = (TOTAL, NEWEST, SESSION_BAR)

    def __init__(self, *, database, memos, view, store, private_pages):
        self._database = database
        self._memos = memos
        self._view = view
        self._private_pages = private_pages
        self.store = PageStore(store, database, memos, self)

    def answer(self, path, session_bar="", user_id=None):
        """Returns the page for a visitor, or None if there is no such public page.

        Stores it too.
        """
        with self._database.snapshot():
            html = self.render(path)
            if html is None:
                return None
            version = self._memos.public_total()
            fragments = self.fragments()
        self.store.push(path, html, version)
        return self._filled(html, path, {**fragments, SESSION_BAR: session_bar}, user_id)

    def memo_was_added(self):
        """Renews the most popular page, so that its visitors do not all request it at once.

        Runs after a public memo was added: no older page may be served from here on. Storing this
        page settles the other pages under the same lock.
        """
        if self.store.is_used:
            self.answer("/")

    def render(self, path):
        """Returns the page as it is stored, with the comments, or None."""
        if path == "/":
            return self._list(0, "front.html")
        if found := LIST.fullmatch(path):
            return self._list(int(found[1]), "recent.html")
        if found := MEMO.fullmatch(path):
            return self._memo(int(found[1]))
        return None

    def _filled(self, html, path, parts, user_id):
        def for_author(found):
            is_author = int(found[1]) == user_id
            return self._links_of_author(path) if is_author else found[2]

        html = FOR_AUTHOR.sub(for_author, html)
        return INCLUDE.sub(lambda found: parts.get(found[1], ""), html)

    def _links_of_author(self, path):
        memo_id = int(MEMO.fullmatch(path)[1])
        return self._private_pages.neighbours(self._memos.find(memo_id))

    def _list(self, page, template):
        last = self._memos.last_page()
        if page > last:
            return None
        return self._view.render(
            template,
            memos=self._memos.public_page(page), page=page, last_page=last,
            total=_include(TOTAL), session_bar=_include(SESSION_BAR),
        )

    def _memo(self, memo_id):
        memo = self._memos.find(memo_id)
        if memo is None or memo["public_number"] is None:
            return None
        everybodys = self._view.render(
            "neighbours.html", memo=memo, neighbours=self._memos.public_neighbours(memo)
        )
        return self._view.render(
            "memo.html",
            memo=memo,
            body=Markup(markdown.html(memo["content"])),
            neighbours=self._view.render(
                "stored_neighbours.html", memo=memo, everybodys=everybodys
            ),
            newest=_include(NEWEST), total=_include(TOTAL), session_bar=_include(SESSION_BAR),
        )

    # ------------------------------------------------------------------ for PageStore

    def identity(self):
        """Returns the name of this site's pages: other templates make other pages."""
        return f"{self._database.setting('site_id')}/{self._view.fingerprint}"

    def fragments(self):
        """Returns the parts that pages share, by their keys."""
        return {
            TOTAL: f"{self._memos.public_total():,}",
            NEWEST: self._view.render("newest.html", memos=self._memos.newest()),
            SESSION_BAR: self._session_bar(),
        }

    def _session_bar(self):
        """Returns the part for each kind of visitor, and the comments that choose."""
        return self._view.render(
            "stored_session_bar.html",
            stranger=self._view.render("session_bar.html", user=None),
            signed_in=self._view.render(
                "session_bar.html",
                user={"name": _echo("session.name")}, csrf_token=_echo("session.csrf_token"),
            ),
        )

    def keys_changed(self, settled):
        """Returns the keys of the pages that have changed since there were `settled` public memos.

        Every new memo shifts all lists, so all are removed and made again at the next request. Of
        the memos' pages only those of the new memos and of their older neighbours change. The parts
        of private pages go only if nothing in the store can be trusted, which None stands for.
        """
        lists = [f"/recent/{page}" for page in range(self._memos.last_page() + 1)]
        if settled is None:
            ids, private = self._memos.public_ids(), self._private_pages.keys_in_store()
        else:
            ids, private = self._memos.ids_touched_since(settled), []
        return ["/", *lists, *(f"/memo/{memo_id}" for memo_id in ids), *private]


def _include(key):
    return Markup(f"<!--# include {key} -->")


def _echo(variable):
    # Kirin escapes echoed values.
    return Markup(f'<!--# echo var="{variable}" default="" -->')
