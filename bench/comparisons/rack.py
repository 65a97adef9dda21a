"""rack-hello, rack-params, rack-bodies and rack-behind-nginx: Ruby applications behind the servers
that run them.
"""

from __future__ import annotations

from pathlib import Path

from comparison import Budget, Comparison, Entrant
from comparisons.psgi import kept, of_kirin
from comparisons.wsgi import FORM, HELLO, LARGE, PARAMS, QUERY, behind_nginx
from host import BENCH
from load import HttpLoad
from peers import ruby_servers

WORKERS = 4


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

HELLO_APP = BENCH / "apps" / "hello.ru"

HELLO_COMPARISON = Comparison(
    name="rack-hello",
    question="The smallest Rack application: what do the server and the way to the worker cost?",
    entrants=of_rack(HELLO_APP),
    loads=(
        HttpLoad(f"{WORKERS} connections kept, one a worker", expect=HELLO, connections=WORKERS),
        HttpLoad("64 connections kept", expect=HELLO),
        HttpLoad("1,000 connections kept", expect=HELLO, connections=1000),
        HttpLoad("64 connections, each for one request", expect=HELLO, keep_alive=False),
    ),
    budgets=(HALF_OF_PUMA,),
    notes=NOTES,
)

PARAMS_COMPARISON = Comparison(
    name="rack-params",
    question="A query and a form with 5 parameters, which the application reads by Rack::Request.",
    entrants=of_rack(BENCH / "apps" / "params.ru"),
    loads=(
        HttpLoad("GET with 5 parameters, 64 connections kept", path=f"/?{QUERY}", expect=PARAMS),
        HttpLoad("POST of a form with 5 fields, 64 connections kept", form=QUERY, expect=PARAMS),
    ),
    budgets=(Budget("Puma", "kirin", "Puma", 1.0),),
    notes=NOTES,
)

BODIES_COMPARISON = Comparison(
    name="rack-bodies",
    question="Bodies of 1 MB: how many times are they copied on the way to the application and back?",
    entrants=of_rack(BENCH / "apps" / "bodies.ru"),
    loads=(
        HttpLoad("1 MB down, 16 connections kept", expect=LARGE, connections=16),
        HttpLoad("1 MB up, 16 connections kept", form=FORM, expect=str(len(FORM)).encode(), connections=16),
    ),
    budgets=(Budget("Puma", "kirin", "Puma", 1.0),),
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
    loads=HELLO_COMPARISON.loads[1:3],
    budgets=(Budget("half of the best pair", "kirin", "nginx → Puma", 0.5),),
    notes=NOTES,
)
