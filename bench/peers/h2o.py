"""Debian's h2o. It keeps files open by itself and writes no access log unless told to."""

from __future__ import annotations

import os
from pathlib import Path

from certificate import Certificate
from host import Host, Server, free_port, version_of


def static_files(
    host: Host, directory: Path | str, tls: Certificate | None = None, name: str = "h2o", more: str = ""
) -> Server:
    """Files from `directory`, one thread. `more` is a line of configuration for all of it."""
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
{more}
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
    about = f"{version_of('h2o', '-v')}: num-threads 1, file.dir, no access log{', TLS' if tls else ''}"
    return Server(port, [pid], ", ".join(filter(None, (about, more))))


def compressing(host: Host, directory: Path) -> Server:
    """Compressed for each request, at its default level."""
    return static_files(host, directory, name="h2o-compress", more="compress: ON")


def sending_compressed(host: Host, directory: Path) -> Server:
    """With compressed files beside the others."""
    return static_files(host, directory, name="h2o-send-compressed", more="file.send-compressed: ON")
