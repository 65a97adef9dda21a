"""wsgi-hello, wsgi-params, asgi-hello, python-bodies and python-behind-nginx: Python applications
behind the servers that run them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comparison import Budget, Comparison, Entrant
from comparisons.psgi import of_kirin
from host import BENCH, Host, Server
from load import HttpLoad
from peers import kirin, nginx, python_servers

WORKERS = 4


def of_wsgi(app: Path) -> tuple[Entrant, ...]:
    """Returns every server with this WSGI application and the same number of workers."""
    return (
        *of_kirin(app, WORKERS),
        Entrant("granian", "Granian WSGI", lambda host: python_servers.granian(host, app, WORKERS)),
        Entrant("gunicorn", "gunicorn", lambda host: python_servers.gunicorn(host, app, WORKERS)),
        Entrant("uwsgi", "uWSGI http11-socket", lambda host: python_servers.uwsgi(host, app, WORKERS)),
    )


def of_asgi(app: Path) -> tuple[Entrant, ...]:
    """Returns every server with the ASGI application of this file."""
    return (
        Entrant("kirin", "Kirin ASGI", lambda host: kirin_asgi(host, app)),
        Entrant("granian", "Granian ASGI", lambda host: python_servers.granian(host, app, WORKERS, "asgi")),
        Entrant("uvicorn", "uvicorn", lambda host: python_servers.uvicorn(host, app, WORKERS)),
    )


def kirin_asgi(host: Host, app: Path) -> Server:
    """Starts Kirin with the ASGI application of a file, and with the uvloop of the others."""
    python_servers.program("python")
    of_asgi_app = kirin.App(app, WORKERS, name="asgi", virtual_env=python_servers.ENVIRONMENT)
    return kirin.start(host, "kirin-asgi", places=("app:web",), app=of_asgi_app)


def behind_nginx(peer: str, name: str, start: Callable[[Host], Server]) -> Entrant:
    """Returns a server behind nginx, which keeps connections to it."""
    return Entrant(
        peer, f"nginx → {name}", lambda host: nginx.proxy(host, f"nginx-{peer}", start(host), keepalive=WORKERS)
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
HELLO_APP = BENCH / "apps" / "hello.py"

HELLO_COMPARISON = Comparison(
    name="wsgi-hello",
    question="The smallest Python application: what do the server and the way to the worker cost?",
    entrants=(*of_wsgi(HELLO_APP), *of_asgi(HELLO_APP)[1:]),
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
    entrants=of_wsgi(BENCH / "apps" / "params.py"),
    loads=(
        HttpLoad("GET with 5 parameters, 64 connections kept", path=f"/?{QUERY}", expect=PARAMS),
        HttpLoad("POST of a form with 5 fields, 64 connections kept", form=QUERY, expect=PARAMS),
    ),
    budgets=(Budget("Granian", "kirin", "Granian WSGI", 1.0),),
    notes=NOTES,
)

ASGI_COMPARISON = Comparison(
    name="asgi-hello",
    question="The smallest ASGI application: many requests at the same time in each worker.",
    entrants=of_asgi(HELLO_APP),
    loads=HELLO_COMPARISON.loads,
    budgets=(
        Budget("Granian", "Kirin ASGI", "Granian ASGI", 1.0, "64 connections kept"),
        Budget("a fifth more than uvicorn", "Kirin ASGI", "uvicorn", 1.2, "64 connections kept"),
    ),
    notes=(
        f"{python_servers.python_version()}, {WORKERS} workers, and all processes are on the one core: CPU time is of all of "
        "them. All have uvloop, but Granian, whose loop for Python is its own.",
        "Kirin hands requests to such workers over sockets: one connection for each request that runs.",
    ),
)

BODIES_APP = BENCH / "apps" / "bodies.py"
LARGE = bytes(range(250)) * 4000
FORM = "a=" + "x" * 1_000_000

BODIES_COMPARISON = Comparison(
    name="python-bodies",
    question="Bodies of 1 MB: how many times are they copied on the way to the application and back?",
    entrants=(*of_wsgi(BODIES_APP), *of_asgi(BODIES_APP)),
    loads=(
        HttpLoad("1 MB down, 16 connections kept", expect=LARGE, connections=16),
        HttpLoad("1 MB up, 16 connections kept", form=FORM, expect=str(len(FORM)).encode(), connections=16),
    ),
    budgets=(
        Budget("Granian", "kirin", "Granian WSGI", 1.0),
        Budget("Granian", "Kirin ASGI", "Granian ASGI", 1.0),
    ),
    notes=NOTES,
)

NGINX_COMPARISON = Comparison(
    name="python-behind-nginx",
    question="The same application behind nginx, as at most sites, beside Kirin alone.",
    entrants=(
        of_wsgi(HELLO_APP)[0],
        of_asgi(HELLO_APP)[0],
        behind_nginx("granian", "Granian WSGI", lambda host: python_servers.granian(host, HELLO_APP, WORKERS)),
        behind_nginx("gunicorn", "gunicorn", lambda host: python_servers.gunicorn(host, HELLO_APP, WORKERS)),
        behind_nginx("uwsgi", "uWSGI", lambda host: python_servers.uwsgi(host, HELLO_APP, WORKERS)),
        behind_nginx("uvicorn", "uvicorn", lambda host: python_servers.uvicorn(host, HELLO_APP, WORKERS)),
    ),
    loads=HELLO_COMPARISON.loads[1:],
    budgets=(Budget("the best pair", "kirin", "nginx → Granian WSGI", 1.0),),
    notes=(
        *NOTES,
        f"nginx keeps up to {WORKERS} connections to the server behind it (`keepalive`). CPU time is of both.",
    ),
)
