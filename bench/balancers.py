"""Balancers in front of the machines of the memo example: a Kirin, or Debian's HAProxy.

A balancer sends the visitors of one session to one machine, because a machine that did not write
is told of a write a moment later. It says how many requests each machine got, and can be told to
leave one out.
"""

from __future__ import annotations

import csv
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from host import BenchError, Host, Server, free_port, version_of
from machines import Machine, run_kirin

SESSION = "memo_session"
"""The cookie by which a visitor returns to the same machine."""

HEALTH = "/robots.txt"

NAME = "balancer"


class Balancer(Protocol):
    """A started balancer."""

    server: Server

    def requests(self) -> list[int]:
        """Returns how many requests each machine got so far."""
        ...

    def in_flight(self, machine: Machine) -> int:
        """Returns how many requests a machine has now."""
        ...

    def cut(self) -> int:
        """Returns how many responses it had begun to pass on when their machine ended."""
        ...

    def is_up(self, machine: Machine) -> bool:
        """Returns whether a machine gets requests."""
        ...

    def take_out(self, machine: Machine) -> None:
        """Gives a machine no further request. Those that it has go on."""
        ...

    def put_back(self, machine: Machine) -> None:
        """Gives a machine requests again."""
        ...


@dataclass
class KirinBalancer:
    """A Kirin with `proxy:`."""

    host: Host
    server: Server
    config: Path
    addresses: list[str]

    def _said(self) -> list[dict[str, object]]:
        said = json.loads(run_kirin(self.host, "status", self.config, self._environment(), "--json"))
        by_address = {str(one["server"]): one for one in said["upstreams"]["memo"]["servers"]}
        return [by_address[address] for address in self.addresses]

    def _of(self, machine: Machine) -> dict[str, object]:
        return self._said()[machine.number - 1]

    def _environment(self) -> dict[str, str]:
        return {"KIRIN_ADMIN_DIRECTORY": str(self.config.parent)}

    def requests(self) -> list[int]:
        return [int(str(one["requests"])) for one in self._said()]

    def in_flight(self, machine: Machine) -> int:
        return int(str(self._of(machine)["in_flight"]))

    def cut(self) -> int:
        return self.host.log_of(NAME).read_text(errors="replace").count("response was cut")

    def is_up(self, machine: Machine) -> bool:
        return self._of(machine)["availability"] == "available"

    def take_out(self, machine: Machine) -> None:
        self._set("disable", machine)

    def put_back(self, machine: Machine) -> None:
        self._set("enable", machine)

    def _set(self, action: str, machine: Machine) -> None:
        words = ("memo", self.addresses[machine.number - 1])
        run_kirin(self.host, f"upstream {action}", self.config, self._environment(), *words)


def kirin(
    host: Host, machines: Sequence[Machine], sticky: bool = True, health_seconds: int = 2
) -> KirinBalancer:
    """Starts a Kirin in front of the machines. Without `sticky` they take turns. A machine is not
    healthy if it does not answer within `health_seconds`.
    """
    port = free_port()
    directory = host.directory / NAME
    directory.mkdir()
    config = directory / "balancer.toml"
    addresses = [f"127.0.0.1:{machine.port}" for machine in machines]
    hashed = f'balance = "hash"\nhash_key = "cookie:{SESSION}"\n' if sticky else ""
    # A body that is complete can be sent again to another machine if the first one is not there.
    config.write_text(
        f"""\
[[listener]]
address = "127.0.0.1:{port}"

[[upstream]]
name = "memo"
servers = {json.dumps(addresses)}
health = {{ path = "{HEALTH}", interval = "1s", timeout = "{health_seconds}s", unhealthy_after = 2 }}
ejection_time = "2s"
{hashed}
[[route]]
path = "/"
try = ["proxy:memo"]
request_buffering = true
"""
    )
    environment = {"KIRIN_ADMIN_DIRECTORY": str(directory)}
    pid = host.start(NAME, [host.kirin, "serve", "--config", config], port=port, env=environment)
    about = f"{version_of(str(host.kirin), '--version')}: proxy:, {'hash by ' + SESSION if sticky else 'in turn'}"
    return KirinBalancer(host, Server(port, [pid], about), config, addresses)


@dataclass
class HaproxyBalancer:
    """HAProxy, asked and told over its stats socket."""

    server: Server
    socket: Path

    def _tell(self, command: str) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(command.encode() + b"\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        return answer

    def _rows(self) -> list[dict[str, str]]:
        rows = csv.DictReader(self._tell("show stat").removeprefix("# ").splitlines())
        return [row for row in rows if row["pxname"] == "memo" and row["svname"].isdigit()]

    def _of(self, machine: Machine) -> dict[str, str]:
        return next(row for row in self._rows() if row["svname"] == str(machine.number))

    def requests(self) -> list[int]:
        return [int(row["stot"]) for row in self._rows()]

    def in_flight(self, machine: Machine) -> int:
        return int(self._of(machine)["scur"])

    def cut(self) -> int:
        return sum(int(row["srv_abrt"]) for row in self._rows())

    def is_up(self, machine: Machine) -> bool:
        return self._of(machine)["status"].startswith("UP")

    def take_out(self, machine: Machine) -> None:
        self._set(machine, "maint")

    def put_back(self, machine: Machine) -> None:
        self._set(machine, "ready")

    def _set(self, machine: Machine, state: str) -> None:
        if said := self._tell(f"set server memo/{machine.number} state {state}").strip():
            raise BenchError(f"haproxy: {said}")


def haproxy(host: Host, machines: Sequence[Machine], sticky: bool = True) -> HaproxyBalancer:
    """Starts HAProxy in front of the machines."""
    port = free_port()
    config, stats = host.directory / "haproxy.cfg", host.directory / "haproxy.sock"
    servers = "\n".join(
        f"    server {machine.number} 127.0.0.1:{machine.port} check inter 1s fall 2 rise 2" for machine in machines
    )
    balance = f"hash req.cook({SESSION})\n    hash-type consistent" if sticky else "roundrobin"
    # A request that a machine may have seen is sent again only if that is harmless.
    config.write_text(
        f"""\
global
    nbthread 1
    maxconn 8000
    stats socket {stats} level admin
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    retries 3
    option redispatch 1
    http-reuse safe
frontend front
    bind 127.0.0.1:{port}
    default_backend memo
backend memo
    balance {balance}
    option httpchk GET {HEALTH}
    option http-buffer-request
    retry-on conn-failure empty-response response-timeout
    http-request disable-l7-retry if METH_POST
{servers}
"""
    )
    pid = host.start("haproxy", ["haproxy", "-f", config, "-db"], port=port)
    about = f"{version_of('haproxy', '-v')}: {'hash by ' + SESSION if sticky else 'in turn'}"
    return HaproxyBalancer(Server(port, [pid], about), stats)
