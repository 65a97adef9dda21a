"""Debian's Caddy, the peer that has HTTP/3."""

from __future__ import annotations

from pathlib import Path

from certificate import Certificate
from host import Host, Server, free_port, version_of


def static_files(host: Host, directory: Path | str, tls: Certificate, name: str = "caddy") -> Server:
    """Serves files from `directory` over HTTP/1, 2 and 3. Go's scheduler gets one thread, as the
    server gets one core.
    """
    port = free_port()
    config = host.directory / f"{name}.Caddyfile"
    config.write_text(
        f"""\
{{
	admin off
	auto_https off
	http_port {free_port()}
	https_port {port}
	default_sni 127.0.0.1
}}
https://:{port} {{
	tls {tls.chain} {tls.key}
	root * {directory}
	file_server
}}
"""
    )
    env = {"GOMAXPROCS": "1", "HOME": str(host.directory)}
    command = ["caddy", "run", "--config", config, "--adapter", "caddyfile"]
    pid = host.start(name, command, port=port, env=env)
    return Server(port, [pid], f"Caddy {version_of('caddy', 'version')}: file_server, GOMAXPROCS=1")
