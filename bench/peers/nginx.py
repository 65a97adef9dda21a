"""Debian's nginx with one worker, in the compared configurations. One has an access log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import certificate
from host import Host, Server, debian_version, free_port, version_of
from peers import memcached

MODULES = Path("/usr/lib/nginx/modules")
LUA = ("ndk_http_module.so", "ngx_http_lua_module.so")

HERE = Path(__file__).resolve().parent
"""The directory of nginx_memcached.lua and nginx_redis.lua."""

KEEP = "keepalive_requests 1000000000; keepalive_timeout 600s;"
"""Without it nginx 1.22 closes a connection after 1,000 requests."""

TUNED_FILES = f"""
    {KEEP}
    sendfile on; tcp_nopush off; tcp_nodelay on;
    open_file_cache max=10000 inactive=600s; open_file_cache_valid 600s; open_file_cache_min_uses 1;
"""

DEBIAN_FILES = "sendfile on; tcp_nopush on;"
"""The settings for files in the package's /etc/nginx/nginx.conf."""


def start(
    host: Host,
    name: str,
    about: str,
    *,
    http: str = "",
    server: str,
    modules: Sequence[str] = (),
    connections: int = 4096,
    beside: Sequence[Server] = (),
    listen: str = "",
    socket_path: Path | None = None,
    beside_load: bool = False,
) -> Server:
    """Starts nginx. `beside` are the servers behind it, whose CPU time counts as its own. With
    `socket_path` it also listens on that socket.
    """
    port = free_port()
    listen_unix = f"listen unix:{socket_path} backlog=4096;" if socket_path else ""
    config = host.directory / f"{name}.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    load = "\n".join(f"load_module {MODULES / module};" for module in modules)
    config.write_text(
        f"""\
{load}
{user}
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
error_log {host.log_of(f"{name}-error")} warn;
pid {host.directory / name}.pid;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    types {{ text/html html; }}
    default_type text/html;
    client_body_temp_path {host.directory / name}-body;
    proxy_temp_path {host.directory / name}-proxy;
    fastcgi_temp_path {host.directory / name}-fastcgi;
    uwsgi_temp_path {host.directory / name}-uwsgi;
    scgi_temp_path {host.directory / name}-scgi;
    {http}
    server {{
        listen 127.0.0.1:{port} backlog=4096{listen};
        {listen_unix}
        {server}
    }}
}}
"""
    )
    command = ["nginx", "-c", config, "-e", host.log_of(f"{name}-error")]
    pid = host.start(name, command, port=port, beside_load=beside_load)
    roots = [pid, *(root for peer in beside for root in peer.roots)]
    about = f"{version_of('nginx', '-v')}: worker_processes 1, access_log off, {about}"
    return Server(port, roots, about, socket_path=socket_path)


def returning(host: Host, body: bytes, connections: int = 4096) -> Server:
    """Starts `return 200`, the least work that nginx can do."""
    return start(
        host,
        f"nginx-return-{connections}",
        f"return 200, keepalive_requests unlimited, worker_connections {connections}",
        http=KEEP,
        server=f"location / {{ return 200 '{body.decode()}'; }}",
        connections=connections,
    )


def returning_logged(host: Host, body: bytes, options: str) -> Server:
    """Starts `return 200` with an access log in the combined format."""
    name = f"nginx-return-log{'-buffered' * bool(options)}"
    return start(
        host,
        name,
        f"return 200, access_log combined {options}".rstrip(),
        http=KEEP,
        server=f"""access_log {host.directory / name}.log combined {options};
            location / {{ return 200 '{body.decode()}'; }}""",
    )


def _tls(host: Host) -> str:
    made = certificate.make(host.directory)
    return f"ssl_certificate {made.chain}; ssl_certificate_key {made.key}; ssl_protocols TLSv1.2 TLSv1.3;"


def returning_tls(host: Host, body: bytes) -> Server:
    """Starts `return 200` over TLS."""
    return start(
        host,
        "nginx-return-tls",
        "return 200 over TLS, keepalive_requests unlimited",
        http=KEEP + _tls(host),
        server=f"location / {{ return 200 '{body.decode()}'; }}",
        listen=" ssl",
    )


def returning_http2(host: Host, body: bytes, tls: bool, connections: int = 4096) -> Server:
    """Starts `return 200` over HTTP/2."""
    return start(
        host,
        f"nginx-return-http2{'-tls' * tls}",
        f"return 200, http2{', ssl' * tls}, keepalive_requests unlimited, worker_connections {connections}",
        http=KEEP + (_tls(host) if tls else ""),
        server=f"location / {{ return 200 '{body.decode()}'; }}",
        listen=f" http2{' ssl' * tls}",
        connections=connections,
    )


def files_http2(host: Host, directory: str, tls: bool) -> Server:
    """Serves static files over HTTP/2, as tuning guides recommend."""
    return start(
        host,
        f"nginx-http2{'-tls' * tls}",
        f"http2{', ssl' * tls}, open_file_cache, keepalive_requests unlimited",
        http=TUNED_FILES + (_tls(host) if tls else ""),
        server=f"root {directory};",
        listen=f" http2{' ssl' * tls}",
    )


def lua_say(host: Host, body: bytes) -> Server:
    """Serves a page that is a constant in Lua code."""
    return start(
        host,
        "nginx-lua-say",
        "content_by_lua ngx.print of a constant with Content-Length",
        http=KEEP,
        server=f"""location / {{ content_by_lua_block {{
            ngx.header.content_length = {len(body)}
            ngx.print([==[{body.decode()}]==])
        }} }}""",
        modules=LUA,
    )


def lua_shared_dict(host: Host, body: bytes) -> Server:
    """Serves a page from nginx's own shared memory. Its path is the key."""
    return start(
        host,
        "nginx-lua-dict",
        "content_by_lua ngx.print of a lua_shared_dict item found by path",
        http=f"""{KEEP}
    lua_shared_dict pages 64m;
    init_by_lua_block {{ ngx.shared.pages:set("/page", [==[{body.decode()}]==]) }}""",
        server="""location / { content_by_lua_block {
            local page = ngx.shared.pages:get(ngx.var.uri)
            if not page then return ngx.exit(404) end
            ngx.header.content_length = #page
            ngx.print(page)
        } }""",
        modules=LUA,
    )


def files_debian(host: Host, directory: Path) -> Server:
    """Serves static files as the Debian package is configured, but without the log."""
    return start(host, "nginx-files-debian", DEBIAN_FILES, http=DEBIAN_FILES, server=f"root {directory};")


def files_tuned(host: Host, directory: Path) -> Server:
    """Serves static files as tuning guides recommend."""
    about = "sendfile on, tcp_nopush off, open_file_cache, keepalive_requests unlimited"
    return start(host, "nginx-files-tuned", about, http=TUNED_FILES, server=f"root {directory};")


def files_many(host: Host, directory: Path, files: int) -> Server:
    """Serves static files with an open-file cache for many of them."""
    cache = f"open_file_cache max={files} inactive=600s; open_file_cache_valid 60s; open_file_cache_min_uses 1;"
    about = f"sendfile on, {cache} keepalive_requests unlimited"
    return start(host, "nginx-files-many", about, http=f"{KEEP} sendfile on; {cache}", server=f"root {directory};")


def files_uncached(host: Host, directory: Path) -> Server:
    """Serves static files without an open-file cache."""
    about = "sendfile on, no open_file_cache, keepalive_requests unlimited"
    return start(host, "nginx-files-uncached", about, http=f"{KEEP} sendfile on;", server=f"root {directory};")


def files_gzip(host: Host, directory: Path) -> Server:
    """Serves tuned static files and compresses them for each request."""
    about = "gzip on (level 1, its default), otherwise tuned"
    return start(host, "nginx-gzip", about, http=f"{TUNED_FILES} gzip on;", server=f"root {directory};")


def files_gzip_static(host: Host, directory: Path) -> Server:
    """Serves tuned static files with compressed files beside them."""
    about = "gzip_static on, otherwise tuned"
    return start(host, "nginx-gzip-static", about, http=f"{TUNED_FILES} gzip_static on;", server=f"root {directory};")


def memcached_plain(host: Host, items: dict[str, bytes], *, ssi: bool = False) -> Server:
    """Uses `memcached_pass` over TCP as its documentation shows it: with a connection for every
    item.
    """
    store = memcached.start(host, f"memcached-behind-nginx{'-ssi' * ssi}")
    _fill(store, items)
    return _to_memcached(
        host, f"nginx-memcached{'-ssi' * ssi}", "memcached_pass to TCP, a connection an item", store,
        upstream=f"server {store.store};", ssi=ssi,
    )  # fmt: skip


def memcached_tuned(host: Host, items: dict[str, bytes], *, ssi: bool = False) -> Server:
    """Uses `memcached_pass` over a unix socket with kept connections, the fastest possible
    configuration.

    A page with three includes requests three items at once on each client connection, so more than
    64 are kept.
    """
    store = memcached.start_unix(host, f"memcached-tuned-behind-nginx{'-ssi' * ssi}")
    _fill(store, items)
    return _to_memcached(
        host, f"nginx-memcached-tuned{'-ssi' * ssi}", "memcached_pass to a unix socket, keepalive 512", store,
        upstream=f"server {store.store}; keepalive 512;", ssi=ssi,
    )  # fmt: skip


def _to_memcached(host: Host, name: str, about: str, store: Server, *, upstream: str, ssi: bool) -> Server:
    return start(
        host,
        name,
        about + (", ssi on" if ssi else "") + f"; {store.about}; CPU of both",
        http=f"{KEEP} upstream store {{ {upstream} }}",
        server=f"""location / {{
            set $memcached_key $uri;
            memcached_pass store;
            {'ssi on;' if ssi else ''}
        }}""",
        beside=[store],
    )


def lua_memcached(
    host: Host,
    name: str,
    items: Mapping[str, bytes],
    *,
    about: str,
    locations: Mapping[str, str],
    dict_items: Mapping[str, bytes] | None = None,
    pass_rest: bool = False,
) -> Server:
    """Starts Lua that uses memcached over kept connections of a unix socket.

    `locations` have code with `memcached` (nginx_memcached.lua) and `STORE`, its address. With
    `pass_rest` all other paths are pages with includes in memcached.
    """
    store = memcached.start_unix(host, f"memcached-behind-{name}")
    _fill(store, items)
    # Cosockets, too, name a unix socket by `unix:` and a path.
    prelude = f'local memcached, STORE = require "nginx_memcached", "{store.store}"'
    code = "\n".join(
        f"location {path} {{ content_by_lua_block {{ {prelude}\n{lua} }} }}" for path, lua in locations.items()
    )
    rest = "location / { set $memcached_key $uri; memcached_pass store; ssi on; }" if pass_rest else ""
    upstream = f"upstream store {{ server {store.store}; keepalive 512; }}" if pass_rest else ""
    filled = "".join(f"ngx.shared.pages:set([==[{key}]==], [==[{body.decode()}]==]) " for key, body in (dict_items or {}).items())
    shared = f"lua_shared_dict pages 64m; init_by_lua_block {{ {filled} }}" if dict_items else ""
    return start(
        host,
        name,
        f"{about}; {store.about}; CPU of both",
        http=f'{KEEP} lua_package_path "{HERE}/?.lua;;"; {upstream} {shared}',
        server=f"{code}\n{rest}",
        modules=LUA,
        beside=[store],
    )


def lua_redis(host: Host, name: str, behind: Server, code: str, about: str) -> Server:
    """Starts Lua that uses a redis-server. `code` answers all paths, with `pages` (nginx_redis.lua), the
    shared dictionary `ngx.shared.pages`, and `REDIS`, the server's port.
    """
    client = debian_version("lua-nginx-redis")
    return start(
        host,
        name,
        f"{about}; {client}; {behind.about}; CPU of both",
        http=f'{KEEP} lua_package_path "{HERE}/?.lua;;"; lua_shared_dict pages 64m;',
        server=f"""location / {{ content_by_lua_block {{
            local pages, REDIS = require "nginx_redis", {behind.port}
            {code}
        }} }}""",
        modules=LUA,
    )


def _fill(store: Server, items: Mapping[str, bytes]) -> None:
    for key, value in items.items():
        memcached.set_item(store.store, key, value)


def proxy(
    host: Host, name: str, behind: Server, *, keepalive: int = 0, directory: Path | None = None
) -> Server:
    """Starts nginx in front of an application server, as at most sites: nginx keeps the
    connections, the workers do not.

    With `keepalive` it keeps this number of connections to the workers too. With `directory` it
    serves the files below /static.
    """
    peer = f"unix:{behind.socket_path}" if behind.socket_path else f"127.0.0.1:{behind.port}"
    upstream, location = f"server {peer};", "proxy_pass http://app;"
    if keepalive:
        upstream += f" keepalive {keepalive}; keepalive_requests 1000000000;"
        location += ' proxy_http_version 1.1; proxy_set_header Connection "";'
    static = f"location /static/ {{ root {directory}; }}" if directory else ""
    kept = f"keepalive {keepalive}" if keepalive else "a connection a request"
    return start(
        host,
        name,
        f"proxy_pass over {'a unix socket' if behind.socket_path else 'TCP'}, {kept}; "
        f"behind it {behind.about}; CPU of both",
        http=f"{TUNED_FILES if directory else KEEP} upstream app {{ {upstream} }}",
        server=f"location / {{ {location} }} {static}",
        beside=[behind],
    )


def upstream(host: Host, name: str, directory: Path) -> Server:
    """Starts the server behind the compared proxies. It serves files from `directory` that may be
    stored for a day, over TCP and a unix socket.

    It runs beside the load, and its CPU time is not counted.
    """
    return start(
        host,
        name,
        "files, Cache-Control: public, max-age=86400",
        http=TUNED_FILES,
        server=f'root {directory}; add_header Cache-Control "public, max-age=86400";',
        socket_path=host.directory / f"{name}.sock",
        beside_load=True,
    )


def upgrading_to(host: Host, peer: str) -> Server:
    """Starts a proxy that passes `Upgrade` on, as nginx documents it for WebSocket."""
    return start(
        host,
        "nginx-websocket",
        "proxy_pass, Upgrade and Connection passed on, proxy_read_timeout 600s",
        server=f"""location / {{
            proxy_pass http://{peer}; proxy_http_version 1.1; proxy_read_timeout 600s;
            proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "upgrade";
        }}""",
    )


def proxy_to(host: Host, peer: str, *, name: str = "nginx-proxy", cache_megabytes: int = 0) -> Server:
    """Starts a proxy to `HOST:PORT` or `unix:PATH` that keeps its connections there, as tuning
    guides recommend.
    """
    http, location, about = KEEP, "", "proxy_pass, keepalive 512, proxy_http_version 1.1"
    if cache_megabytes:
        cache = f"{host.directory}/nginx-cache-{free_port()} levels=1:2 keys_zone=cache:64m max_size={cache_megabytes}m inactive=1d"
        http += f" proxy_cache_path {cache} use_temp_path=off; {TUNED_FILES.replace(KEEP, '')}"
        location = "proxy_cache cache; proxy_cache_lock on;"
        about += f", proxy_cache {cache_megabytes} MB on disk, open_file_cache"
    return start(
        host,
        f"{name}{'-cache' * bool(cache_megabytes)}",
        about,
        http=f"{http} upstream behind {{ server {peer}; keepalive 512; keepalive_requests 1000000000; }}",
        server=f'''location / {{
            proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; {location}
        }}''',
    )
