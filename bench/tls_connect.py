#!/usr/bin/env python3
"""Makes TLS connections, one after the other, for `ConnectLoad`.

    tls_connect.py PORT PATH SECONDS full|resumed

Each connection does a handshake (TLS 1.3) and one request, and waits for its end.
"""

from __future__ import annotations

import socket
import ssl
import sys
import time


def main(port: str, path: str, seconds: str, how: str) -> None:
    """Connects until the time is over. Prints the numbers of the run."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    session, resumed, taken = None, 0, []
    start = time.monotonic()
    end = start + float(seconds)
    while (began := time.monotonic()) < end:
        plain = socket.create_connection(("127.0.0.1", int(port)))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain, session=session) as connection:
            connection.sendall(request)
            while connection.recv(65536):
                pass
            resumed += connection.session_reused or 0
            if how == "resumed":
                session = connection.session
        taken.append((time.monotonic() - began) * 1e6)
    elapsed = time.monotonic() - start
    taken.sort()
    print(f"connections {len(taken)}\nresumed {resumed}\nseconds {elapsed:.6f}")
    print(f"p50_us {taken[len(taken) // 2]:.1f}\np99_us {taken[len(taken) * 99 // 100]:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
