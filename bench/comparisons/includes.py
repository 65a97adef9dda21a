"""includes: a page put together from three parts."""

from __future__ import annotations

import page
from comparison import Budget, Comparison, Entrant
from load import HttpLoad
from peers import floor, kirin, nginx

PATH = "/page"
FILLED = page.filled()

# Kirin's include names an item of the store, nginx's a location that asks memcached for its own path.
KIRIN_ITEMS = {
    PATH: kirin.html(page.with_includes("<!--# include {} -->")),
    **{key: kirin.html(body) for key, body in page.FRAGMENTS.items()},
}
NGINX_ITEMS = {PATH: page.with_includes('<!--# include virtual="{}" -->'), **page.FRAGMENTS}

COMPARISON = Comparison(
    name="includes",
    question="A page with three includes, all four parts put into memory by an application.",
    entrants=(
        Entrant("kirin", "kirin store", lambda host: kirin.start(host, pages=KIRIN_ITEMS)),
        Entrant("floor", "floor", lambda host: floor.start(host, body_bytes=len(FILLED))),
        Entrant(
            "nginx", "nginx SSI → memcached", lambda host: nginx.memcached_plain(host, NGINX_ITEMS, ssi=True)
        ),
        Entrant(
            "nginx",
            "nginx SSI → memcached, tuned",
            lambda host: nginx.memcached_tuned(host, NGINX_ITEMS, ssi=True),
        ),
    ),
    loads=(HttpLoad("page with 3 includes, 64 connections kept", path=PATH, expect=FILLED),),
    budgets=(
        Budget("a twenty-fifth of nginx SSI → memcached", "kirin store", "nginx SSI → memcached", 1 / 25),
    ),
    notes=(
        "nginx asks memcached four times a page; its answer is chunked. CPU time of both counts.",
        "`tuned` is a unix socket and kept connections to memcached.",
    ),
)
