"""Debian's HAProxy with one thread and no log."""

from __future__ import annotations

from host import Host, Server, free_port, version_of


def proxy_to(host: Host, peer: str, *, cache_megabytes: int = 0) -> Server:
    """Starts a proxy to `HOST:PORT` or `unix:PATH`. Its cache is in memory and stores objects up to
    half of its size.
    """
    port = free_port()
    name = f"haproxy{'-cache' * bool(cache_megabytes)}"
    config = host.directory / f"{name}.cfg"
    cache_section, cache_rules, about = "", "", "http-reuse always, nbthread 1"
    if cache_megabytes:
        cache_section = (
            f"cache kept\n    total-max-size {cache_megabytes}\n    max-object-size 4000000\n    max-age 86400\n"
        )
        cache_rules = "    http-request cache-use kept\n    http-response cache-store kept\n"
        about += f", cache {cache_megabytes} MB"
    config.write_text(
        f"""\
global
    nbthread 1
    maxconn 8000
defaults
    mode http
    timeout connect 5s
    timeout client 600s
    timeout server 600s
    http-reuse always
{cache_section}
frontend front
    bind 127.0.0.1:{port} backlog 4096
    default_backend behind
backend behind
{cache_rules}    server behind {peer.replace("unix:", "unix@")} pool-max-conn 512
"""
    )
    pid = host.start(name, ["haproxy", "-f", config, "-db"], port=port)
    return Server(port, [pid], f"{version_of('haproxy', '-v')}: {about}")
