"""tls: the cost of encryption, on kept connections and on new ones."""

from __future__ import annotations

import certificate
import page
from comparison import Comparison, Entrant
from http3_load import KeyExchangeLoad
from load import HttpLoad
from peers import kirin, nginx
from tls_load import ConnectLoad

PATH = "/page"
PAGE = page.html(1024)
HYBRID = "X25519MLKEM768"

COMPARISON = Comparison(
    name="tls",
    question="A page of 1 KB from memory over TLS: kept connections, full handshakes, resumed sessions.",
    entrants=(
        Entrant(
            "kirin",
            "kirin store",
            lambda host: kirin.start(host, pages={PATH: kirin.html(PAGE)}, tls=certificate.make(host.directory)),
        ),
        Entrant("nginx", "nginx return", lambda host: nginx.returning_tls(host, PAGE), lambda load: HYBRID not in load.title),
    ),
    loads=(
        HttpLoad("1 KB page, 64 connections kept", path=PATH, expect=PAGE, tls=True),
        ConnectLoad("new connections, full handshakes", path=PATH, expect=PAGE, resumed=False),
        ConnectLoad("new connections, sessions resumed", path=PATH, expect=PAGE, resumed=True),
        KeyExchangeLoad("full handshakes by X25519, 8 at once", path=PATH, expect=PAGE, exchange="x25519"),
        KeyExchangeLoad(f"full handshakes by {HYBRID}, 8 at once", path=PATH, expect=PAGE, exchange="hybrid"),
    ),
    tool="wrk for kept connections, bench/tls_connect.py for new ones, bench/h3load for a chosen key exchange",
    notes=(
        "TLS 1.3, ECDSA P-256. Kirin: rustls with ring. nginx: Debian's OpenSSL, `ssl_session_tickets on` (its default).",
        "New connections come one after the other from one client, in Python: requests/s is its figure, CPU time the "
        "server's. Each has a handshake, one request and an end.",
        f"Debian's OpenSSL 3.0 has no {HYBRID}, so nginx is not in that table.",
        "A resumed handshake of TLS 1.3 still has a key exchange; what it saves is the signature.",
    ),
)
