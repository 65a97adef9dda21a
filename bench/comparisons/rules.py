"""rules: what the rules of a route add to a static file: fields with variables, and a program that
decides who may pass."""

from __future__ import annotations

import page
from comparison import Comparison, Entrant
from comparisons.small_file import public
from host import Host, Server
from load import HttpLoad
from peers import kirin, nginx

FILE = page.html(1024)

FIELDS = HttpLoad("1 KB file, three fields with variables, 64 connections kept", path="/fields/small.html", expect=FILE)
ASKED = HttpLoad("1 KB file behind auth_request, 64 connections kept", path="/asked/small.html", expect=FILE)
PLAIN = HttpLoad("1 KB file without rules, 64 connections kept", path="/plain/small.html", expect=FILE)


def authority(host: Host, name: str) -> Server:
    """Starts the program that lets everybody pass. It runs beside the load."""
    return nginx.start(
        host, f"authority-{name}", "return 204", http=nginx.KEEP, server="location / { return 204; }", beside_load=True
    )


def with_kirin(host: Host) -> Server:
    directory, program = public(host), authority(host, "kirin")
    return kirin.start(
        host,
        "kirin-rules",
        places=("store",),
        more=f"""
[[upstream]]
name = "authority"
servers = ["127.0.0.1:{program.port}"]

[[route]]
path = "/plain"
try = ["files:{directory}"]
rewrite = "/"

[[route]]
path = "/fields"
try = ["files:{directory}"]
rewrite = "/"
headers = {{ X-Host = "{{host}}", X-Path = "{{path}}", X-Id = "{{request_id}}" }}

[[route]]
path = "/asked"
try = ["files:{directory}"]
rewrite = "/"
auth_request = "proxy:authority"
""",
    )


def with_nginx(host: Host) -> Server:
    directory, program = public(host), authority(host, "nginx")
    return nginx.start(
        host,
        "nginx-rules",
        "add_header and auth_request, upstream keepalive 512, otherwise tuned",
        http=f"{nginx.TUNED_FILES} upstream authority {{ server 127.0.0.1:{program.port}; keepalive 512; }}",
        server=f"""
        location /plain/ {{ alias {directory}/; }}
        location /fields/ {{ alias {directory}/;
            add_header X-Host $host; add_header X-Path $uri; add_header X-Id $request_id; }}
        location /asked/ {{ alias {directory}/; auth_request /authority; }}
        location = /authority {{ internal; proxy_pass http://authority/; proxy_http_version 1.1;
            proxy_set_header Connection ""; proxy_pass_request_body off; proxy_set_header Content-Length ""; }}""",
    )


COMPARISON = Comparison(
    name="rules",
    question="What rules add to a static file: variables in fields, and auth_request to another server.",
    entrants=(
        Entrant("kirin", "kirin", with_kirin),
        Entrant("nginx", "nginx, tuned", with_nginx),
    ),
    loads=(PLAIN, FIELDS, ASKED),
    notes=(
        "The program behind auth_request is an nginx that answers 204, on the load's core: its CPU time counts for no server, and it "
        "lowers what the load can make. Read CPU time and not requests/s.",
        "Both keep their connections to it.",
        "Kirin serves all three routes with `files:`. Nothing is asked of the store.",
    ),
)
