"""A notice board: plain WSGI, the same code on three machines.

The notes are items of the store, so all machines have them. A real site has them in a database
server. The page is stored, too: one machine makes it, and all of them serve it without a worker.
"""
import hmac
import html
import os
import re
import secrets
from urllib.parse import parse_qs

from kirin.store import Store

MACHINE = os.environ["MACHINE"]
NEWEST = 20
TEXT_LENGTH = 300
# A form field has at most twelve bytes for each character of the text, and a token beside it.
BODY_LENGTH = 12 * TEXT_LENGTH + 200
COOKIE = "board_token"

store = Store()


def application(environ, start_response):
    """Answers a request."""
    path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
    handlers = {("/", "GET"): board, ("/write", "GET"): form, ("/notes", "POST"): add}
    if path == "/health":
        status, headers, body = "200 OK", [("Content-Type", "text/plain")], "well\n"
    else:
        handler = handlers.get((path, "GET" if method == "HEAD" else method), missing)
        status, headers, body = handler(environ)
    start_response(status, headers)
    return [body.encode()]


def board(environ):
    """The newest notes. Kirin stores the page until somebody purges its tag."""
    count = store.get("note-count") or 0
    keys = [f"note/{number}" for number in range(count, max(count - NEWEST, 0), -1)]
    notes = store.get_multi(keys)
    items = "".join(note(notes[key]) for key in keys if key in notes)
    body = (
        f"<h1>Notice board</h1>\n<ul>\n{items}</ul>\n"
        f'<p class="made">This page was made on {MACHINE}.</p>\n'
    )
    # Visitors can invent queries, so only the address without one is stored.
    stored = [] if environ["QUERY_STRING"] else [("Kirin-Store", 'tags="board"')]
    return page("200 OK", body, stored)


def note(values):
    """One note of the page."""
    return (
        f"<li>{escape(values['text'])} "
        f"<small>written on {escape(values['machine'])}</small></li>\n"
    )


def form(environ):
    """The form for a note. The token in it is also in a cookie, which other sites cannot set."""
    token = cookie(environ) or secrets.token_hex(16)
    body = (
        '<h1>Write a note</h1>\n<form method="post" action="/notes">\n'
        f'<input type="hidden" name="token" value="{escape(token)}">\n'
        '<label for="text">Note</label>\n'
        f'<input id="text" name="text" required maxlength="{TEXT_LENGTH}">\n'
        "<button>Pin it</button>\n</form>\n"
    )
    fields = [
        ("Set-Cookie", f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"),
        ("Cache-Control", "private, no-store"),
    ]
    return page("200 OK", body, fields)


def add(environ):
    """Stores a note, then has Kirin purge the page on all machines."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > BODY_LENGTH:
        return refusal("413 Content Too Large", "That is too long.")
    body = environ["wsgi.input"].read(length).decode("utf-8", "replace")
    values = {name: texts[0] for name, texts in parse_qs(body).items()}
    token = cookie(environ)
    if not token or not hmac.compare_digest(token.encode(), values.get("token", "").encode()):
        return refusal("403 Forbidden", "This form is not from this site.")
    text = values.get("text", "").strip()
    if not text or len(text) > TEXT_LENGTH:
        return refusal("422 Unprocessable Content", "A note needs a text.")

    # The number is the same for no two notes, whichever machines store them at the same time.
    store.add("note-count", 0)
    number = store.incr("note-count")
    if not number or not store.set(f"note/{number}", {"text": text, "machine": MACHINE}):
        return refusal("503 Service Unavailable", "The origin is away. Please try again.")
    return "303 See Other", [("Location", "/"), ("Kirin-Purge", 'tags="board"')], ""


def missing(_environ):
    """The answer for all other addresses and methods."""
    return refusal("404 Not Found", "There is no such page.")


def refusal(status, reason):
    """A page that says why there is no other."""
    return page(status, f'<h1>Sorry</h1>\n<p>{reason} <a href="/">To the board</a></p>\n')


def page(status, body, fields=()):
    """Returns a complete page."""
    document = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="UTF-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>Notice board</title>\n"
        '<link rel="icon" href="/favicon.svg" type="image/svg+xml">\n'
        '<link rel="stylesheet" href="/board.css">\n</head>\n<body>\n'
        '<nav><a href="/">Board</a> <a href="/write">Write a note</a></nav>\n'
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )
    return status, [("Content-Type", "text/html; charset=UTF-8"), *fields], document


def cookie(environ):
    """Returns the visitor's token, or an empty text."""
    for pair in environ.get("HTTP_COOKIE", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == COOKIE and re.fullmatch("[0-9a-f]{32}", value):
            return value
    return ""


def escape(text):
    """Escapes a text for HTML."""
    return html.escape(text, quote=True)
