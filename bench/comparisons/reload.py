"""reload: a change of the configuration of 1,000 sites, each with a certificate of its own."""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from comparison import Entrant
from host import BenchError, Host, Server, debian_version, free_port, version_of
from peers import nginx
from report import grid

NAME = "reload"
QUESTION = "1,000 sites with a certificate each: how long does a reload take, and how long does a request wait meanwhile?"
TOOL = "two clients of this program: one on a kept connection, one with a new connection for each request"
SHARE_CORES = False
SITES = 1000
RELOADS = 5
LIMIT_SECONDS = 60.0

NOTES = (
    "The configuration differs in the answer of the first site. The time of a reload is from its command, or HUP, to the "
    "first new connection that gets the new answer. `kirin reload` returns when that is so.",
    "Waits are those of requests over plain HTTP while the reload goes on, the worst of each reload, and of as long a time "
    "before it. nginx answers a kept connection with its old workers until it closes it; so its new connections count.",
    "Each server has one thread or worker, on one core. nginx reads the configuration in its master process and starts a "
    "worker on the same core. Kirin reads it on its main thread, and opens the routes on the event loop that serves.",
    "Caddy's command translates the Caddyfile, on the load's core, and Caddy takes the result over its admin socket.",
    "`memory` is the private memory of all processes, after the start and after the last reload.",
)

HEADER = (
    "server", "reload ms", "kept: worst ms", "before", "new connection: worst ms", "before", "memory MB", "at the end",
)


@dataclass
class Sites:
    """The certificates of the sites."""

    directory: Path

    @classmethod
    def make(cls, directory: Path) -> Sites:
        directory.mkdir(exist_ok=True)
        for number in range(SITES):
            name = f"s{number}.test"
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                 "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
                 "-keyout", directory / f"{number}.key", "-out", directory / f"{number}.pem"],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        return cls(directory)

    def pair(self, number: int) -> tuple[Path, Path]:
        return self.directory / f"{number}.pem", self.directory / f"{number}.key"


def kirin_config(sites: Sites, port: int, tls_port: int, answer: int) -> str:
    pairs = ", ".join(f'{{ chain = "{chain}", key = "{key}" }}' for chain, key in map(sites.pair, range(SITES)))
    parts = [
        f'threads = 1\n[[listener]]\naddress = "127.0.0.1:{port}"\n',
        f'[[listener]]\naddress = "127.0.0.1:{tls_port}"\n[listener.tls]\ncertificates = [{pairs}]\n',
    ]
    for number in range(SITES):
        code = answer if number == 0 else 302
        parts.append(
            f'[[site]]\nname = "s{number}"\nhosts = ["s{number}.test"]\n'
            f'[[site.route]]\npath = "/"\nredirect = "/a"\nredirect_status = {code}\n'
            f'[[site.route]]\npath = "/a"\ntry = ["store"]\n'
        )
    return "".join(parts)


def nginx_config(sites: Sites, directory: Path, port: int, tls_port: int, answer: int) -> str:
    servers = []
    for number in range(SITES):
        chain, key = sites.pair(number)
        code = answer if number == 0 else 302
        servers.append(
            f"server {{ listen 127.0.0.1:{port}; listen 127.0.0.1:{tls_port} ssl; server_name s{number}.test;"
            f" ssl_certificate {chain}; ssl_certificate_key {key};"
            f" location = / {{ return {code} /a; }} location = /a {{ return 404; }} }}"
        )
    user = "user root;" if os.geteuid() == 0 else ""
    return (
        f"{user} daemon off; worker_processes 1; error_log {directory}/nginx-error.log warn; pid {directory}/nginx.pid;\n"
        "events { worker_connections 4096; }\n"
        f"http {{ access_log off; server_names_hash_max_size 8192; {nginx.KEEP}\n" + "\n".join(servers) + "\n}\n"
    )


@dataclass
class ConfigFile:
    """A configuration that can have another answer of the first site."""

    path: Path
    text: Callable[[int], str]

    def write(self, answer: int) -> None:
        self.path.write_text(self.text(answer))


@dataclass
class Running:
    """A server that runs with a configuration."""

    server: Server
    config: ConfigFile
    reload: Callable[[], None]


def start_kirin(host: Host, sites: Sites) -> Running:
    port, tls_port = free_port(), free_port()
    config = ConfigFile(host.directory / "reload.toml", partial(kirin_config, sites, port, tls_port))
    config.write(301)
    env = {"KIRIN_ADMIN_DIRECTORY": str(host.directory)}
    pid = host.start("kirin", [host.kirin, "serve", "--config", config.path], port=port, env=env)
    server = Server(port, [pid], f"{version_of(str(host.kirin), '--version')}: threads = 1")

    def reload() -> None:
        subprocess.run([host.kirin, "reload", "--config", config.path], check=True, stdout=subprocess.DEVNULL, env=os.environ | env)

    return Running(server, config, reload)


def start_nginx(host: Host, sites: Sites) -> Running:
    port, tls_port = free_port(), free_port()
    config = ConfigFile(host.directory / "reload.conf", partial(nginx_config, sites, host.directory, port, tls_port))
    config.write(301)
    pid = host.start("nginx", ["nginx", "-c", config.path, "-e", host.directory / "nginx-start.log"], port=port)
    server = Server(port, [pid], f"{version_of('nginx', '-v')}: worker_processes 1")
    return Running(server, config, lambda: os.kill(pid, signal.SIGHUP))


def caddy_config(sites: Sites, directory: Path, port: int, tls_port: int, answer: int) -> str:
    parts = [f"{{\n auto_https off\n admin unix/{directory}/caddy.sock\n}}\n"]
    for number in range(SITES):
        chain, key = sites.pair(number)
        code = answer if number == 0 else 302
        parts.append(
            f"http://s{number}.test:{port} {{\n bind 127.0.0.1\n redir / /a {code}\n}}\n"
            f"https://s{number}.test:{tls_port} {{\n bind 127.0.0.1\n tls {chain} {key}\n redir / /a {code}\n}}\n"
        )
    return "".join(parts)


def start_caddy(host: Host, sites: Sites) -> Running:
    port, tls_port = free_port(), free_port()
    config = ConfigFile(host.directory / "Caddyfile", partial(caddy_config, sites, host.directory, port, tls_port))
    config.write(301)
    arguments = ["--config", config.path, "--adapter", "caddyfile"]
    env = {"GOMAXPROCS": "1", "HOME": str(host.directory)}
    pid = host.start("caddy", ["caddy", "run", *arguments], port=port, env=env)
    server = Server(port, [pid], f"caddy {debian_version('caddy')}: GOMAXPROCS=1")
    address = f"unix/{host.directory}/caddy.sock"

    def reload() -> None:
        command = ["caddy", "reload", *arguments, "--address", address]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | env)

    return Running(server, config, reload)


def not_by_load(_host: Host) -> Server:
    raise BenchError("the servers of this comparison start with the certificates")


@dataclass(frozen=True)
class ReloadEntrant(Entrant):
    """A server whose configuration can be written and reloaded."""

    begin: Callable[[Host, Sites], Running] = start_kirin


ENTRANTS = (
    ReloadEntrant("kirin", "kirin reload", not_by_load, begin=start_kirin),
    ReloadEntrant("nginx", "nginx, HUP", not_by_load, begin=start_nginx),
    ReloadEntrant("caddy", "caddy reload", not_by_load, begin=start_caddy),
)

REQUEST = b"GET / HTTP/1.1\r\nHost: s0.test\r\n\r\n"


def ask(connection: socket.socket) -> int:
    """Returns the status of an answer that has no body, or a short one."""
    connection.sendall(REQUEST)
    answer = connection.recv(4096)
    if not answer:
        raise ConnectionError("closed")
    return int(answer.split(b" ", 2)[1])


class Waits:
    """Asks again and again, and keeps how long each answer took."""

    def __init__(self, port: int, *, is_kept: bool) -> None:
        self.port, self.is_kept = port, is_kept
        self.times: list[tuple[float, float]] = []
        self.is_over = False
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self) -> None:
        connection: socket.socket | None = None
        while not self.is_over:
            began = time.monotonic()
            try:
                if connection is None:
                    connection = socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_SECONDS)
                ask(connection)
            except ConnectionError:
                connection = None
                continue
            self.times.append((began, time.monotonic() - began))
            if not self.is_kept:
                connection.close()
                connection = None
            time.sleep(0.0005)

    def worst(self, begin: float, end: float) -> float:
        return max((took for at, took in self.times if begin <= at + took and at <= end), default=0.0)

    def end(self) -> None:
        self.is_over = True
        self.thread.join()


def memory_megabytes(pid: int) -> float:
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    total = 0
    for one in pids:
        for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                total += int(line.split()[1])
    return total / 1024


def milliseconds(times: Sequence[float]) -> str:
    return f"{1000 * statistics.median(times):.1f}"


def run(host: Host, entrants: Sequence[ReloadEntrant], progress: TextIO) -> tuple[str, dict[str, str]]:
    """Returns the table, and the description of each server."""
    sites = Sites.make(host.directory / "certificates")
    body, about = [], {}
    for entrant in entrants:
        running = entrant.begin(host, sites)
        server = running.server
        about[entrant.row] = server.about
        first = memory_megabytes(server.roots[0])
        waits = {True: Waits(server.port, is_kept=True), False: Waits(server.port, is_kept=False)}
        took: list[float] = []
        worst: dict[bool, tuple[list[float], list[float]]] = {key: ([], []) for key in waits}
        try:
            for number in range(RELOADS):
                answer = (307, 308)[number % 2]
                running.config.write(answer)
                time.sleep(2.0)
                began = time.monotonic()
                running.reload()
                while True:
                    with socket.create_connection(("127.0.0.1", server.port)) as connection:
                        if ask(connection) == answer:
                            break
                    if time.monotonic() > began + LIMIT_SECONDS:
                        raise TimeoutError("the new answer does not come")
                end = time.monotonic()
                took.append(end - began)
                time.sleep(0.5)
                for key, waiting in waits.items():
                    worst[key][0].append(waiting.worst(began, end + 0.3))
                    worst[key][1].append(waiting.worst(began - (end - began) - 0.3, began - 0.01))
        finally:
            for waiting in waits.values():
                waiting.end()
        time.sleep(3.0)
        last = memory_megabytes(server.roots[0])
        host.stop_all()
        print(f"{NAME}: {entrant.row}: {statistics.median(took):.3f} s", file=progress, flush=True)
        body.append(
            [
                entrant.row, f"{1000 * statistics.median(took):.0f}",
                milliseconds(worst[True][0]), milliseconds(worst[True][1]),
                milliseconds(worst[False][0]), milliseconds(worst[False][1]),
                f"{first:.0f}", f"{last:.0f}",
            ]
        )
    return grid(HEADER, body), about
