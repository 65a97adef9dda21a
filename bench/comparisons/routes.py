"""routes: a page from memory behind one route, behind 1,000, and on one of 1,000 sites."""

from __future__ import annotations

import page
from comparison import Budget, Comparison, Entrant
from load import HttpLoad
from peers import kirin

PAGE = page.html(1024)
LITERAL, NAMED, SUFFIX = "/section-77/list/page", "/users/seven/list-150/page", "/docs/a/b/c/page.x50"
NOT_FOUND_BEFORE = "/page"
PAGES = {path: kirin.html(PAGE) for path in (LITERAL, NAMED, SUFFIX, NOT_FOUND_BEFORE)}
HOST = "127.0.0.1"
MATCH = 'match = { methods = ["POST"] }\n'


def _route(path: str, more: str = "") -> str:
    return f'[[route]]\npath = "{path}"\ntry = ["store"]\n{more}'


def many_routes() -> str:
    """Returns 999 routes of all kinds, beside that of `/`."""
    routes = [_route(f"/section-{number}/list") for number in range(500)]
    routes += [_route(f"/users/{{id}}/list-{number}") for number in range(200)]
    routes += [_route(f"*.x{number}") for number in range(100)]
    routes += [_route(f"/docs/{{a}}/*.y{number}") for number in range(50)]
    routes += [_route(f"= /exact-{number}") for number in range(100)]
    routes += [_route(f"/section-{number}/list", MATCH) for number in range(49)]
    return "".join(routes)


def many_sites() -> str:
    """Returns 1,000 sites with ten routes each. The load asks for the host of one of them."""
    names = [f"site-{number}.example.org" for number in range(998)] + ["*.example.net", HOST]
    paths = ("/", "/section-77/list", "/users/{id}/list-150", "*.x50", "/docs", "/a", "/b", "/c/{id}", "*.png", "= /d")
    routes = "".join(_route(path).replace("[[route]]", "[[site.route]]") for path in paths)
    return "".join(f'[[site]]\nhosts = ["{name}"]\n{routes}' for name in names)


def load(title: str, path: str) -> HttpLoad:
    """Returns the load of one page."""
    return HttpLoad(f"{title}, 64 connections kept", path=path, expect=PAGE)


LOADS = (
    load("by `/`", NOT_FOUND_BEFORE),
    load("by literal segments", LITERAL),
    load("by a name", NAMED),
    load("by a suffix, after names that lead nowhere", SUFFIX),
)

COMPARISON = Comparison(
    name="routes",
    question="Does a request feel the number of routes and sites?",
    entrants=(
        Entrant("kirin", "1 route", lambda host: kirin.start(host, "kirin-one", pages=PAGES)),
        Entrant(
            "kirin", "1,000 routes", lambda host: kirin.start(host, "kirin-many", pages=PAGES, more=many_routes())
        ),
        Entrant(
            "kirin",
            "1,000 sites with 10 routes",
            lambda host: kirin.start(
                host,
                "kirin-sites",
                pages={f"{HOST}:{path}": value for path, value in PAGES.items()},
                more=many_sites(),
            ),
        ),
    ),
    loads=LOADS,
    budgets=(
        Budget("≤ 1.05 × one route", "1,000 routes", "1 route", 1.05),
        Budget("≤ 1.05 × one site", "1,000 sites with 10 routes", "1 route", 1.05),
    ),
    notes=(
        "The 1,000 routes: 549 literal paths (49 of them with `match`), 200 with a name, 150 with a suffix, 100 exact "
        "ones, and `/`.",
        "The 1,000 sites: 998 by name, one by a wildcard, and the one of the load. All have the same ten routes.",
    ),
)
