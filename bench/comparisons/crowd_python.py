"""crowd-python: many kept connections, few workers and slow readers, with Python applications."""

from __future__ import annotations

from pathlib import Path

from comparison import Entrant
from comparisons import crowd
from host import BENCH, Host, Server
from peers import kirin, nginx, python_servers

NAME = "crowd-python"
QUESTION = crowd.QUESTION
TOOL = crowd.TOOL
SHARE_CORES = crowd.SHARE_CORES
WORKERS = crowd.WORKERS
NOTES = crowd.NOTES
APP = BENCH / "apps" / "crowd.py"


def kirin_with(name: str, virtual_env: Path | None) -> Entrant:
    """Returns Kirin with the application of this name."""

    def start(host: Host) -> Server:
        app = kirin.App(APP, WORKERS, name=name, virtual_env=virtual_env)
        return kirin.start(host, f"kirin-{name}", places=("app:web",), app=app)

    return Entrant("kirin", "Kirin ASGI" if name == "asgi" else "kirin", start)


ENTRANTS = (
    kirin_with("application", None),
    kirin_with("asgi", python_servers.ENVIRONMENT),
    Entrant("granian", "Granian WSGI", lambda host: python_servers.granian(host, APP, WORKERS)),
    Entrant("granian", "Granian ASGI", lambda host: python_servers.granian(host, APP, WORKERS, "asgi")),
    Entrant("gunicorn", "gunicorn", lambda host: python_servers.gunicorn(host, APP, WORKERS)),
    Entrant("uvicorn", "uvicorn", lambda host: python_servers.uvicorn(host, APP, WORKERS)),
    Entrant("uwsgi", "uWSGI http11-socket", lambda host: python_servers.uwsgi(host, APP, WORKERS)),
    Entrant(
        "nginx",
        "nginx → gunicorn",
        lambda host: nginx.proxy(host, "nginx-gunicorn", python_servers.gunicorn(host, APP, WORKERS)),
    ),
)

run = crowd.run
