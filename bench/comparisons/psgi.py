"""psgi-hello and psgi-params: PSGI applications behind the servers that run them."""

from __future__ import annotations

from pathlib import Path

from comparison import Budget, Comparison, Entrant
from host import BENCH, Host, Server
from load import HttpLoad, Load
from peers import feersum, kirin, nginx, starlet, starman, uwsgi

WORKERS = 5


def kept(load: Load) -> bool:
    """Returns whether the load keeps its connections."""
    return not isinstance(load, HttpLoad) or load.keep_alive


def of_kirin(app: Path, workers: int) -> tuple[Entrant, Entrant]:
    """Returns Kirin with this application, by shared memory and over sockets."""
    return (
        Entrant("kirin", "kirin", lambda host: kirin.start(host, places=("app:web",), app=kirin.App(app, workers))),
        Entrant(
            "kirin",
            "Kirin over sockets",
            lambda host: kirin.start(
                host, "kirin-sockets", places=("app:web",), app=kirin.App(app, workers, ring=False)
            ),
        ),
    )


def entrants(app: Path) -> tuple[Entrant, ...]:
    """Returns every server with this application and the same number of workers."""

    def behind_nginx(host: Host) -> Server:
        return nginx.proxy(host, "nginx-starlet", starlet.start(host, app, WORKERS, "starlet-behind-nginx"))

    return (
        *of_kirin(app, WORKERS),
        Entrant("starlet", "Starlet", lambda host: starlet.start(host, app, WORKERS)),
        Entrant("nginx", "nginx → Starlet", behind_nginx),
        Entrant("starman", "Starman", lambda host: starman.start(host, app, WORKERS)),
        Entrant("feersum", "Feersum", lambda host: feersum.start(host, app, WORKERS)),
        Entrant("uwsgi", "uWSGI http11-socket", lambda host: uwsgi.keep_alive(host, app, WORKERS), kept),
        Entrant(
            "uwsgi",
            "uWSGI http-socket",
            lambda host: uwsgi.closing(host, app, WORKERS),
            lambda load: not kept(load),
        ),
    )


NOTES = (
    f"All have {WORKERS} workers, and front and workers are all on the one core: CPU time is of all processes.",
    "Kirin hands requests over through shared memory; “Kirin over sockets” has `shared_memory = \"0B\"`, as without the "
    "compiled part of the adapter.",
    "Starlet, Starman and uWSGI give a worker to a connection, not to a request. With more connections than workers "
    "the others wait: in Starlet until one has had its max-keepalive-reqs (p99 shows it), in Starman and uWSGI for "
    "as long as the connections in front of them keep asking, so that most of 64 are never served. Such rows are "
    "marked failed. The table with as many connections as workers is what those servers can do at their best.",
    "Debian's Feersum 1.410 closes every connection: it is in the tables with keep-alive only to be complete.",
    "uWSGI's http11-socket keeps connections but frames nothing, so the application gives a Content-Length there "
    "(and `Connection: close` for http-socket and Feersum, which close without saying so). The others send chunks or "
    "work the length out: `answer bytes` differ.",
    "nginx → Starlet is the usual stack: nginx keeps the clients' connections and opens one to Starlet for each "
    "request. Its CPU time is of both.",
)

HELLO = b"Hello World"
HELLO_APP = BENCH / "apps" / "hello.psgi"

HELLO_COMPARISON = Comparison(
    name="psgi-hello",
    question="The smallest PSGI application: what do the server and the way to the worker cost?",
    entrants=entrants(HELLO_APP),
    loads=(
        HttpLoad(f"{WORKERS} connections kept, one a worker", expect=HELLO, connections=WORKERS),
        HttpLoad("64 connections kept", expect=HELLO),
        HttpLoad("64 connections, each for one request", expect=HELLO, keep_alive=False),
    ),
    budgets=(
        Budget("half of Starlet's CPU time at 64 connections", "kirin", "Starlet", 1 / 2, "64 connections kept"),
        Budget("a tenth more than uWSGI", "kirin", "uWSGI http11-socket", 1.1),
    ),
    notes=NOTES,
)

QUERY = "a=1&b=two&c=three%20words&d=4&e=%E9%BA%92%E9%BA%9F"
PARAMS = b"a=1,b=two,c=three words,d=4,e=" + "麒麟".encode()
PARAMS_APP = BENCH / "apps" / "params.psgi"

PARAMS_COMPARISON = Comparison(
    name="psgi-params",
    question="The same with Plack::Request's parameters: does the front's parsing reach the application?",
    entrants=entrants(PARAMS_APP),
    loads=(
        HttpLoad(
            f"GET with 5 parameters, {WORKERS} connections kept",
            path=f"/?{QUERY}",
            expect=PARAMS,
            connections=WORKERS,
        ),
        HttpLoad(
            f"POST of a form with 5 fields, {WORKERS} connections kept",
            form=QUERY,
            expect=PARAMS,
            connections=WORKERS,
        ),
        HttpLoad("GET with 5 parameters, 64 connections kept", path=f"/?{QUERY}", expect=PARAMS),
        HttpLoad("POST of a form with 5 fields, 64 connections kept", form=QUERY, expect=PARAMS),
    ),
    budgets=tuple(
        Budget(f"0.6 of the CPU time of {peer}", "kirin", peer, 0.6)
        for peer in ("Starlet", "Starman", "Feersum", "uWSGI http11-socket")
    ),
    notes=NOTES,
)
