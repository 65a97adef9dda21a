"""The memo site as a WSGI application."""
import logging

from memo import account, public, response, writing
from memo.database import Database
from memo.memos import Memos
from memo.private_pages import PrivatePages
from memo.public_pages import PublicPages
from memo.request import Request
from memo.response import Refusal
from memo.router import Router
from memo.session_items import SessionItems
from memo.sessions import Sessions
from memo.site_store import SiteStore
from memo.users import Users
from memo.view import View

ROUTES = [
    ("GET", "/", public.page),
    ("GET", "/recent/{number}", public.page),
    ("GET", "/memo/{number}", public.memo),
    ("GET", "/memo/{number}/neighbours", public.neighbours),
    ("GET", "/session-bar", public.session_bar),
    ("GET", "/mypage", writing.mypage),
    ("POST", "/memo", writing.write),
    ("GET", "/signup", account.sign_up_form),
    ("POST", "/signup", account.sign_up),
    ("GET", "/signin", account.sign_in_form),
    ("POST", "/signin", account.sign_in),
    ("POST", "/signout", account.sign_out),
]
TITLE_OF_STATUS = {
    400: "Bad request", 403: "Refused", 404: "Not found", 405: "Not allowed", 413: "Too large",
}

log = logging.getLogger(__name__)


class Site:
    """The site. `database`, `schema` and `templates` are paths, `store` is an address or None."""

    def __init__(self, *, database, schema, templates, store):
        self.database = Database(database, schema)
        if self.database.install_schema():
            log.warning(
                "memo: made an empty database at %s; seed.pl fills one", self.database.path
            )
        # A preloading server forks its workers after this. Each worker opens its own connection.
        self.database.close()

        self.view = View(templates)
        self.memos = Memos(self.database)
        self.users = Users(self.database)
        self.store = SiteStore(store)
        self.sessions = Sessions(self.database, SessionItems(self.database, self.store))
        parts = {
            "database": self.database, "memos": self.memos, "view": self.view, "store": self.store,
        }
        self.private_pages = PrivatePages(**parts)
        self.pages = PublicPages(**parts, private_pages=self.private_pages)
        self._router = Router(ROUTES)

    def __call__(self, environ, start_response):
        self.store.catch_up()
        self.pages.store.catch_up()
        request = Request(environ, self.sessions)
        # Any other exception is an error of the application. The server logs it and answers 500.
        try:
            answer = self._dispatch(request)
        except Refusal as refusal:
            answer = self._refuse(request, refusal)
        return answer.to_wsgi(start_response, request.method == "HEAD")

    def _dispatch(self, request):
        handler, numbers, allowed = self._router.match(request.method, request.path)
        if handler:
            return handler(self, request, *numbers)
        if allowed:
            raise Refusal(405, "This address does not do that.", [("Allow", ", ".join(allowed))])
        raise Refusal(404, "There is no such page.")

    def personal_page(self, request, template, status=200, form=None, **variables):
        """Returns a page for this visitor, with the session bar filled in.

        A form (a dict, or None) has the token and the cookie that it needs.
        """
        csrf_token = None if form is None else request.csrf_token()
        html = self.view.render(
            template,
            status=status, form=form, csrf_token=csrf_token,
            session_bar=self.session_bar(request), **variables,
        )
        return response.personal_page(html, status, request.form_cookies())

    def session_bar(self, request):
        """Returns the end of the bar at the top for this visitor."""
        user = request.user_signed_in
        return self.view.render(
            "session_bar.html", user=user, csrf_token=request.csrf_token() if user else None
        )

    def _refuse(self, request, refusal):
        answer = self.personal_page(
            request, "refusal.html", refusal.status,
            title=TITLE_OF_STATUS[refusal.status], reason=refusal.reason,
        )
        answer.headers.extend(refusal.headers)
        return answer
