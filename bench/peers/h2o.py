"""Debian's h2o. By default it keeps files open and writes no access log."""

from __future__ import annotations

import os
from pathlib import Path

from certificate import Certificate
from host import Host, Server, free_port, version_of


def static_files(
    host: Host, directory: Path | str, tls: Certificate | None = None, name: str = "h2o", more: str = ""
) -> Server:
    """Serves files from `directory` with one thread. `more` is a line of configuration for all of
    it.
    """
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
    """Compresses for each request, at the default level."""
    return static_files(host, directory, name="h2o-compress", more="compress: ON")


def sending_compressed(host: Host, directory: Path) -> Server:
    """Serves compressed files that lie beside the others."""
    return static_files(host, directory, name="h2o-send-compressed", more="file.send-compressed: ON")
