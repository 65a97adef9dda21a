"""wsgi-hello and wsgi-params: Python applications behind the servers that run them."""

from __future__ import annotations

from pathlib import Path

from comparison import Budget, Comparison, Entrant
from comparisons.psgi import of_kirin
from host import BENCH
from load import HttpLoad
from peers import python_servers

WORKERS = 4


def entrants(app: Path, *, has_asgi: bool) -> tuple[Entrant, ...]:
    """Returns every server with this application and the same number of workers."""
    of_wsgi = (
        *of_kirin(app, WORKERS),
        Entrant("granian", "Granian WSGI", lambda host: python_servers.granian(host, app, WORKERS)),
        Entrant("gunicorn", "gunicorn", lambda host: python_servers.gunicorn(host, app, WORKERS)),
        Entrant("uwsgi", "uWSGI http11-socket", lambda host: python_servers.uwsgi(host, app, WORKERS)),
    )
    if not has_asgi:
        return of_wsgi
    return (
        *of_wsgi,
        Entrant("granian", "Granian ASGI", lambda host: python_servers.granian(host, app, WORKERS, "asgi")),
        Entrant("uvicorn", "uvicorn", lambda host: python_servers.uvicorn(host, app, WORKERS)),
    )


NOTES = (
    f"{python_servers.python_version()}, but uWSGI has that of Debian. All have {WORKERS} workers, and all processes are on "
    "the one core: CPU time is of all of them.",
    "Kirin hands requests over through shared memory; “Kirin over sockets” has `shared_memory = \"0B\"`, as without the "
    "compiled part of the adapter.",
    "uWSGI gives a worker to a connection, not to a request. With more connections than workers most are never served: "
    "such rows are marked failed.",
    "uvicorn and Granian ASGI run an ASGI application that does the same. gunicorn has `gthread` with one thread, since "
    "its `sync` workers close each connection.",
)

HELLO = b"Hello World"

HELLO_COMPARISON = Comparison(
    name="wsgi-hello",
    question="The smallest Python application: what do the server and the way to the worker cost?",
    entrants=entrants(BENCH / "apps" / "hello.py", has_asgi=True),
    loads=(
        HttpLoad(f"{WORKERS} connections kept, one a worker", expect=HELLO, connections=WORKERS),
        HttpLoad("64 connections kept", expect=HELLO),
        HttpLoad("1,000 connections kept", expect=HELLO, connections=1000),
    ),
    budgets=(
        Budget("Granian, with the compiled part", "kirin", "Granian WSGI", 1.0, "64 connections kept"),
        Budget("a fifth more than uvicorn, without it", "Kirin over sockets", "uvicorn", 1.2, "64 connections kept"),
    ),
    notes=NOTES,
)

QUERY = "a=1&b=two&c=three%20words&d=4&e=%E9%BA%92%E9%BA%9F"
PARAMS = b"a=1,b=two,c=three words,d=4,e=" + "麒麟".encode()

PARAMS_COMPARISON = Comparison(
    name="wsgi-params",
    question="A query and a form with 5 parameters, which the application parses itself.",
    entrants=entrants(BENCH / "apps" / "params.py", has_asgi=False),
    loads=(
        HttpLoad("GET with 5 parameters, 64 connections kept", path=f"/?{QUERY}", expect=PARAMS),
        HttpLoad("POST of a form with 5 fields, 64 connections kept", form=QUERY, expect=PARAMS),
    ),
    budgets=(Budget("Granian", "kirin", "Granian WSGI", 1.0),),
    notes=NOTES,
)
