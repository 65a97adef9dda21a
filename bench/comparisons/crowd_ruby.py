"""crowd-ruby: many kept connections, few workers and slow readers, with Ruby applications."""

from __future__ import annotations

from comparison import Entrant
from comparisons import crowd
from host import BENCH
from peers import kirin, nginx, ruby_servers

NAME = "crowd-ruby"
QUESTION = crowd.QUESTION
TOOL = crowd.TOOL
SHARE_CORES = crowd.SHARE_CORES
WORKERS = crowd.WORKERS
NOTES = (
    *crowd.NOTES,
    "Puma has one thread in each worker, as in the other reports, and in another row five, its default. Thin is one "
    "process with an event loop. Unicorn closes each connection after its response, which is no failure.",
)
APP = BENCH / "apps" / "crowd.ru"

ENTRANTS = (
    Entrant(
        "kirin", "kirin", lambda host: kirin.start(host, places=("app:web",), app=kirin.App(APP, WORKERS))
    ),
    Entrant("puma", "Puma", lambda host: ruby_servers.puma(host, APP, WORKERS)),
    Entrant("puma", "Puma, 5 threads", lambda host: ruby_servers.puma(host, APP, WORKERS, threads=5)),
    Entrant("unicorn", "Unicorn", lambda host: ruby_servers.unicorn(host, APP, WORKERS)),
    Entrant("thin", "Thin", lambda host: ruby_servers.thin(host, APP)),
    Entrant(
        "nginx",
        "nginx → Puma",
        lambda host: nginx.proxy(host, "nginx-puma", ruby_servers.puma(host, APP, WORKERS)),
    ),
)

run = crowd.run
