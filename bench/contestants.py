"""The contestants of `make score`: three ways to serve examples/memo. bench/score/README.md
explains their configurations.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from host import REPOSITORY, BenchError, Host, Server, debian_version, free_port, version_of
from peers import memcached, nginx

MEMO = REPOSITORY / "examples" / "memo"
ADAPTER = REPOSITORY / "adapters" / "perl" / "lib"


@dataclass(frozen=True)
class Site:
    """A copy of the application with a freshly seeded database."""

    directory: Path

    @property
    def app(self) -> Path:
        return self.directory / "app.psgi"

    @property
    def public(self) -> Path:
        return self.directory / "public"

    @property
    def database(self) -> Path:
        return self.directory / "data" / "memo.sqlite"

    def copy(self, to: Path) -> Site:
        shutil.copytree(self.directory, to)
        return Site(to)


@dataclass(frozen=True)
class Contestant:
    """A contestant. `start` gets a name for its files and a site of its own."""

    key: str
    title: str
    start: Callable[[Host, str, Site], Server] = field(repr=False)


def classic(host: Host, name: str, site: Site) -> Server:
    """Starts nginx in front of Starman, with memcached beside them."""
    store = memcached.start(host, f"{name}-memcached")
    behind = _starman(host, name, site)
    front = nginx.start(
        host,
        f"{name}-nginx",
        f"static files with open_file_cache, all else by {BEHIND_NGINX}",
        http=f"""{nginx.TUNED_FILES}
    types {{ text/html html; text/css css; image/svg+xml svg; text/plain txt; }}
    upstream app {{ server unix:{behind.socket_path}; }}""",
        server=f"""
        location ~ ^/(?:memo\\.css|favicon\\.svg|robots\\.txt)$ {{ root {site.public}; }}
        location / {{ proxy_pass http://app; proxy_set_header Host $http_host; }}""",
        beside=[behind, store],
    )
    about = f"{front.about}; {behind.about}; {store.about}, which an application without a page store has no use for"
    return Server(front.port, front.roots, about)


WORKERS = 4
"""The number of workers in the example's kirin.toml."""

BEHIND_NGINX = "proxy_pass to a unix socket, a connection a request"


def _starman(host: Host, name: str, site: Site) -> Server:
    path = host.directory / f"{name}-starman.sock"
    command: list[str | Path] = [
        "starman", "-E", "deployment", "--listen", path, "--workers", str(WORKERS), "--disable-keepalive",
        "--max-requests", "1000000000", "--preload-app", site.app,
    ]  # fmt: skip
    pid = host.start(f"{name}-starman", command, socket_path=path, env={"MEMO_DATABASE": str(site.database)})
    about = f"{debian_version('starman')}: {WORKERS} workers, --preload-app, --disable-keepalive"
    return Server(0, [pid], about, socket_path=path)


def kirin_untouched(host: Host, name: str, site: Site) -> Server:
    """Starts Kirin in place of nginx and Starman. The application is not changed for it."""
    port = free_port()
    config = site.directory / "contest.toml"
    config.write_text(
        f"""\
[[listener]]
address = "127.0.0.1:{port}"

[[app]]
name = "web"
load = "app.psgi"
workers = {WORKERS}
env = {{ MEMO_DATABASE = "data/memo.sqlite" }}

[[route]]
path = "/"
try = ["files:public", "app:web"]
"""
    )
    about = f'try = ["files:public", "app:web"], {WORKERS} workers'
    return _kirin(host, name, config, port, about)


def kirin_pushed(host: Host, name: str, site: Site) -> Server:
    """Starts Kirin with the example's own configuration: the application stores its pages in the
    store.
    """
    port = free_port()
    text = (site.directory / "kirin.toml").read_text()
    config = site.directory / "contest.toml"
    config.write_text(on_port(text, port))
    return _kirin(host, name, config, port, "examples/memo/kirin.toml, without its access log")


def on_port(config: str, port: int) -> str:
    """Returns the example's configuration with another address, and with as few log lines as its
    peers.
    """
    moved, count = re.subn(r'(?m)^address = ".*"$', f'address = "127.0.0.1:{port}"', config)
    if count != 1:
        raise BenchError(f"examples/memo/kirin.toml has {count} addresses, and the contest replaces one")
    return re.sub(r"(?m)^access_log = .*\n", "", moved)


def _kirin(host: Host, name: str, config: Path, port: int, about: str) -> Server:
    if not host.kirin.is_file():
        raise BenchError(f"there is no kirin at {host.kirin}: run `cargo build --release -p kirin`")
    # Until the adapter is installed, the workers' parent finds it in the repository.
    env = {"PERL5LIB": str(ADAPTER)}
    pid = host.start(name, [host.kirin, "serve", "--config", config], port=port, env=env)
    return Server(port, [pid], f"{version_of(str(host.kirin), '--version')}: {about}")


CONTESTANTS = (
    Contestant("classic", "nginx + Starman + memcached", classic),
    Contestant("untouched", "Kirin, application untouched", kirin_untouched),
    Contestant("pushed", "Kirin, pages pushed", kirin_pushed),
)
