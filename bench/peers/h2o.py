"""Debian's h2o. It keeps files open by itself and writes no access log unless told to."""

from __future__ import annotations

import os
from pathlib import Path

from certificate import Certificate
from host import Host, Server, free_port, version_of


def static_files(
    host: Host, directory: Path | str, tls: Certificate | None = None, name: str = "h2o"
) -> Server:
    """Files from `directory`, one thread."""
    port = free_port()
    config = host.directory / f"{name}.yaml"
    user = "user: root\n" if os.geteuid() == 0 else ""
    ssl = (
        f"  ssl:\n    certificate-file: {tls.chain}\n    key-file: {tls.key}\n" if tls else ""
    )
    config.write_text(
        f"""\
{user}num-threads: 1
max-connections: 19000
listen:
  host: 127.0.0.1
  port: {port}
{ssl}hosts:
  default:
    paths:
      /:
        file.dir: {directory}
"""
    )
    pid = host.start(name, ["h2o", "-m", "worker", "-c", config], port=port)
    return Server(port, [pid], f"{version_of('h2o', '-v')}: num-threads 1, file.dir, no access log{', TLS' if tls else ''}")
