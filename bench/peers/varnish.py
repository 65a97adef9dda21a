"""Debian's Varnish, in the foreground, with its objects in memory."""

from __future__ import annotations

from host import Host, Server, free_port, version_of


def proxy_to(host: Host, peer: str, *, name: str = "varnish", cache_megabytes: int = 0) -> Server:
    """Starts a proxy to `HOST:PORT` or `unix:PATH`. It forwards every request unless its cache has
    a size.
    """
    port = free_port()
    name = f"{name}{'-cache' * bool(cache_megabytes)}"
    vcl = host.directory / f"{name}.vcl"
    if peer.startswith("unix:"):
        backend = f'.path = "{peer.removeprefix("unix:")}";'
    else:
        address, _, number = peer.rpartition(":")
        backend = f'.host = "{address}"; .port = "{number}";'
    rule = "return (hash);" if cache_megabytes else "return (pass);"
    vcl.write_text(
        f"""\
vcl 4.1;
backend behind {{ {backend} }}
sub vcl_recv {{ {rule} }}
"""
    )
    command = [
        "varnishd", "-F", "-f", str(vcl), "-a", f"127.0.0.1:{port}", "-n", str(host.directory / name),
        "-s", f"malloc,{cache_megabytes or 64}m", "-p", "thread_pools=1", "-p", "thread_pool_min=100",
        "-p", "thread_pool_max=400",
    ]  # fmt: skip
    pid = host.start(name, command, port=port)
    about = f"malloc,{cache_megabytes}m" if cache_megabytes else "return (pass)"
    return Server(port, [pid], f"{version_of('varnishd', '-V')}: {about}, thread_pools 1; no varnishlog")
