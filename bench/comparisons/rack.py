"""rack-hello, rack-params, rack-bodies and rack-behind-nginx: Ruby applications behind the servers
that run them.
"""

from __future__ import annotations

from pathlib import Path

from comparison import Budget, Comparison, Entrant
from comparisons import wsgi
from comparisons.psgi import kept, of_kirin
from comparisons.wsgi import WORKERS, behind_nginx
from host import BENCH
from load import HttpLoad
from peers import ruby_servers


def of_rack(app: Path) -> tuple[Entrant, ...]:
    """Returns every server with this application and, but for Thin, the same number of workers."""
    return (
        *of_kirin(app, WORKERS),
        Entrant("puma", "Puma", lambda host: ruby_servers.puma(host, app, WORKERS)),
        Entrant(
            "unicorn",
            "Unicorn",
            lambda host: ruby_servers.unicorn(host, app, WORKERS),
            lambda load: not kept(load),
        ),
        Entrant("thin", "Thin", lambda host: ruby_servers.thin(host, app)),
    )


NOTES = (
    f"{ruby_servers.ruby_version()} of Debian. All have {WORKERS} workers, but Thin, which is one process with an event "
    "loop. All processes are on the one core: CPU time is of all of them.",
    "Kirin hands requests over through shared memory; “Kirin over sockets” has `shared_memory = \"0B\"`, as without the "
    "compiled part of the adapter.",
    "Unicorn closes each connection after its response.",
)
HALF_OF_PUMA = Budget("half of Puma", "kirin", "Puma", 0.5, "64 connections kept")
PUMA = Budget("Puma", "kirin", "Puma", 1.0)

HELLO_APP = BENCH / "apps" / "hello.ru"

HELLO_COMPARISON = Comparison(
    name="rack-hello",
    question="The smallest Rack application: what do the server and the way to the worker cost?",
    entrants=of_rack(HELLO_APP),
    loads=(
        *wsgi.HELLO_COMPARISON.loads,
        HttpLoad("64 connections, each for one request", expect=wsgi.HELLO, keep_alive=False),
    ),
    budgets=(HALF_OF_PUMA,),
    notes=NOTES,
)

PARAMS_COMPARISON = Comparison(
    name="rack-params",
    question="A query and a form with 5 parameters, which the application reads by Rack::Request.",
    entrants=of_rack(BENCH / "apps" / "params.ru"),
    loads=wsgi.PARAMS_COMPARISON.loads,
    budgets=(PUMA,),
    notes=NOTES,
)

BODIES_COMPARISON = Comparison(
    name="rack-bodies",
    question="Bodies of 1 MB: how many times are they copied on the way to the application and back?",
    entrants=of_rack(BENCH / "apps" / "bodies.ru"),
    loads=wsgi.BODIES_COMPARISON.loads,
    budgets=(PUMA,),
    notes=NOTES,
)

NGINX_COMPARISON = Comparison(
    name="rack-behind-nginx",
    question="The same application behind nginx, as at most sites, beside Kirin alone.",
    entrants=(
        of_rack(HELLO_APP)[0],
        behind_nginx("puma", "Puma", lambda host: ruby_servers.puma(host, HELLO_APP, WORKERS)),
        behind_nginx("unicorn", "Unicorn", lambda host: ruby_servers.unicorn(host, HELLO_APP, WORKERS)),
        behind_nginx("thin", "Thin", lambda host: ruby_servers.thin(host, HELLO_APP)),
    ),
    loads=wsgi.NGINX_COMPARISON.loads,
    budgets=(Budget("half of the best pair", "kirin", "nginx → Puma", 0.5),),
    notes=NOTES,
)
