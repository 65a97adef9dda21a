"""Kirin itself, from its release build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from certificate import Certificate
from host import REPOSITORY, BenchError, Host, Server, free_port, version_of
from peers import memcached
from serving import wait_for


@dataclass(frozen=True)
class App:
    """A PSGI or Python application behind Kirin."""

    load: Path
    workers: int
    slow: str = ""
    """The time after which a request is logged as slow, or empty."""
    ring: bool = True
    """Whether requests go through shared memory."""
    name: str = ""
    """The name of a Python application in its file. Empty for the one that is found."""
    virtual_env: Path | None = None
    """The virtual environment of a Python application, or None."""

    @property
    def target(self) -> str:
        """Returns the value of `load`."""
        return f"{self.load}:{self.name}" if self.name else str(self.load)


CONNECT_WITHIN_SECONDS = 10.0

LONGEST_SHOWN = 200
"""The longest sections of a configuration that a report shows, in characters."""


def start(
    host: Host,
    name: str = "kirin",
    *,
    places: tuple[str, ...] = ("store",),
    pages: Mapping[str, bytes] | None = None,
    app: App | None = None,
    static: Path | None = None,
    unix_store: bool = False,
    tls: Certificate | None = None,
    http3: bool = False,
    session_cookie: str = "",
    access_log: str = "",
    origin: Server | None = None,
    env: Mapping[str, str] | None = None,
    more: str = "",
) -> Server:
    """Serves `/` from these places. `pages` are stored over Kirin's memcached socket, as an
    application would do it.

    With `static` the files of that directory are served below /static. `session_cookie` names the
    cookie that selects a visitor's item of the store. `access_log` is the value of that key. `origin`
    is a redis-server behind the store. `env` is for the workers. `more` has further sections.
    """
    _built(host)
    port, store_port = free_port(), free_port()
    store_path = host.directory / f"{name}-store.sock"
    store = f"unix:{store_path}" if unix_store else f"127.0.0.1:{store_port}"
    config = host.directory / f"{name}.toml"
    config.write_text(_config(port, store, places, app, _tls(tls, http3), session_cookie, access_log, origin) + _static(static) + more)
    # Until the adapter is installed, the workers' parent finds it in the repository.
    env = {"PERL5LIB": str(REPOSITORY / "adapters" / "perl" / "lib"), **(env or {})}
    pid = host.start(name, [host.kirin, "serve", "--config", config], port=port, env=env)
    if origin is not None:
        connect(store)
    for key, value in (pages or {}).items():
        memcached.set_item(store, key, value)
    about = f"{version_of(str(host.kirin), '--version')}: try = {list(places)}, threads = 1"
    if tls:
        about += ", HTTP/3" if http3 else ", TLS"
    if session_cookie:
        about += f", session_cookie = \"{session_cookie}\""
    if access_log:
        about += f", access_log = {access_log}"
    if origin is not None:
        about += ", store.origin = \"redis://…\""
    if app is not None:
        about += f", {app.workers} workers"
    # The notes of a comparison describe what is too long for its table of configurations.
    if more and len(more) <= LONGEST_SHOWN:
        about += f", {' '.join(more.split())}"
    return Server(port, [pid], about, store)


def proxy_to(
    host: Host, peer: str, *, name: str = "kirin-proxy", cache_megabytes: int = 0, origin: Server | None = None
) -> Server:
    """Starts a proxy to `HOST:PORT` or `unix:PATH`. It has a cache in memory if a size is given, which
    it shares with other machines by `origin`, a redis-server.
    """
    _built(host)
    port = free_port()
    store = f"unix:{host.directory}/{name}-store.sock"
    shared = f'memcached = ["{store}"]\norigin = "{_url(origin)}"\n' if origin else ""
    config = host.directory / f"{name}.toml"
    cache = "cache = true\n" if cache_megabytes else ""
    config.write_text(
        f"""\
threads = 1

[[listener]]
address = "127.0.0.1:{port}"

[store]
memory = "{cache_megabytes or 64}MB"
item_limit = "{min(4, (cache_megabytes or 64) // 2)}MB"
{shared}
[[upstream]]
name = "behind"
servers = ["{peer}"]

[[route]]
path = "/"
try = ["proxy:behind"]
{cache}"""
    )
    pid = host.start(name, [host.kirin, "serve", "--config", config], port=port)
    about = f"{version_of(str(host.kirin), '--version')}: proxy:, threads = 1"
    if cache_megabytes:
        about += f", cache = true, store.memory = {cache_megabytes}MB"
    if origin:
        connect(store)
        about += ", store.origin = \"redis://…\""
    return Server(port, [pid], about)


def start_store(host: Host, megabytes: int) -> Server:
    """Starts the store alone, with memcached's command line and this memory limit, on a unix
    socket.
    """
    _built(host)
    path = host.directory / "kirin-store.sock"
    options = ["-t", "1", "-m", str(megabytes)]
    pid = host.start("kirin-store", [host.kirin, "memcached", "-s", path, *options], socket_path=path)
    about = f"{version_of(str(host.kirin), '--version')}: kirin memcached -t 1 -m …, unix socket"
    return Server(0, [pid], about, f"unix:{path}")


def start_near_store(host: Host, origin: Server) -> Server:
    """Starts `kirin memcached` before a redis-server."""
    _built(host)
    path = host.directory / "kirin-near-store.sock"
    options = ["-t", "1", "-m", "64", "-o", f"origin={_url(origin)}"]
    pid = host.start("kirin-near-store", [host.kirin, "memcached", "-s", path, *options], socket_path=path)
    connect(f"unix:{path}")
    about = f"{version_of(str(host.kirin), '--version')}: kirin memcached -t 1 -m 64 -o origin=redis://…, unix socket"
    return Server(0, [pid], about, f"unix:{path}")


def _url(origin: Server) -> str:
    return f"redis://127.0.0.1:{origin.port}"


def connect(store: str) -> None:
    """Waits until the store at this address is connected to its origin."""
    if not wait_for(lambda: memcached.statistics(store).get("origin_state") == "connected", CONNECT_WITHIN_SECONDS):
        raise BenchError("kirin does not connect to its origin")


def _built(host: Host) -> None:
    if not host.kirin.is_file():
        raise BenchError(
            f"there is no kirin at {host.kirin}: run `cargo build --release -p kirin`, give --kirin PATH, "
            "or leave it out with --only (for instance --only nginx,h2o,floor)"
        )


def _tls(tls: Certificate | None, http3: bool) -> str:
    if tls is None:
        return ""
    section = f'[listener.tls]\ncertificates = [{{ chain = "{tls.chain}", key = "{tls.key}" }}]\n'
    return section + ("http3 = true\n" if http3 else "")


def _config(
    port: int,
    store: str,
    places: tuple[str, ...],
    app: App | None,
    tls_section: str,
    session_cookie: str,
    access_log: str,
    origin: Server | None,
) -> str:
    quoted = ", ".join(f'"{place}"' for place in places)
    app_section = f'[[app]]\nname = "web"\nload = "{app.target}"\nworkers = {app.workers}\n' if app else ""
    app_section += f'slow = "{app.slow}"\n' if app and app.slow else ""
    app_section += f'env = {{ VIRTUAL_ENV = "{app.virtual_env}" }}\n' if app and app.virtual_env else ""
    app_section += 'shared_memory = "0B"\n' if app and not app.ring else ""
    log = f"access_log = {access_log}\n" if access_log else ""
    session = f'session_cookie = "{session_cookie}"\n' if session_cookie else ""
    origin_key = f'origin = "{_url(origin)}"\n' if origin else ""
    return f"""\
threads = 1

[[listener]]
address = "127.0.0.1:{port}"
{log}{tls_section}
[store]
memory = "64MB"
memcached = ["{store}"]
{session}{origin_key}
{app_section}
[[route]]
path = "/"
try = [{quoted}]
"""


def _static(directory: Path | None) -> str:
    return f'[[route]]\npath = "/static"\ntry = ["files:{directory}"]\n' if directory else ""


def html(body: bytes) -> bytes:
    """Returns a page in the form of a store item: media type, line end, body."""
    return b"text/html\r\n" + body
