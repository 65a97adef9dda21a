"""compressed-page: a page of 10 KB for a browser that accepts gzip."""

from __future__ import annotations

import gzip
from pathlib import Path

import page
from comparison import Budget, Comparison, Entrant
from host import Host
from load import HttpLoad, Load
from peers import floor, h2o, kirin, nginx

PATH = "/page.html"
PAGE = page.article(10_000)
CODED = gzip.compress(PAGE, 6)

GZIP = HttpLoad("10 KB page, gzip accepted", path=PATH, expect=PAGE, accept_encoding="gzip")
PLAIN = HttpLoad("the same page, gzip not accepted", path=PATH, expect=PAGE)


def public(host: Host, *, beside: bool) -> Path:
    """Creates a directory with the page. With `beside`, its .gz file is there too."""
    directory = host.directory / ("precompressed" if beside else "page")
    directory.mkdir(exist_ok=True)
    (directory / "page.html").write_bytes(PAGE)
    if beside:
        (directory / "page.html.gz").write_bytes(CODED)
    return directory


def gzip_only(load: Load) -> bool:
    """Returns whether this is the load with gzip, for rows that are only about the coded response.
    """
    return load is GZIP


COMPARISON = Comparison(
    name="compressed-page",
    question="A page of 10 KB for a client that accepts gzip: compressed once and kept, for each request, or beforehand?",
    entrants=(
        Entrant("kirin", "kirin store", lambda host: kirin.start(host, pages={PATH: kirin.html(PAGE)})),
        Entrant(
            "kirin",
            "kirin files",
            lambda host: kirin.start(host, "kirin-files", places=(f"files:{public(host, beside=False)}",)),
        ),
        Entrant("floor", "floor, 10 KB", lambda host: floor.start(host, body_bytes=len(PAGE)), lambda load: load is PLAIN),
        Entrant("floor", "floor, as long as gzip", lambda host: floor.start(host, body_bytes=len(CODED)), gzip_only),
        Entrant("nginx", "nginx gzip", lambda host: nginx.files_gzip(host, public(host, beside=False))),
        Entrant("nginx", "nginx gzip_static", lambda host: nginx.files_gzip_static(host, public(host, beside=True)), gzip_only),
        Entrant("h2o", "h2o compress", lambda host: h2o.compressing(host, public(host, beside=False))),
        Entrant("h2o", "h2o send-compressed", lambda host: h2o.sending_compressed(host, public(host, beside=True)), gzip_only),
    ),
    loads=(GZIP, PLAIN),
    budgets=(
        Budget("a fifth of nginx compressing", "kirin store", "nginx gzip", 0.2, GZIP.title),
        Budget("≤ a file compressed beforehand", "kirin store", "h2o send-compressed", 1.0, GZIP.title),
    ),
    notes=(
        f"The page is random words between tags; gzip 6 makes {len(CODED):,} bytes of its {len(PAGE):,}.",
        "Kirin compresses it at the first request and keeps that beside the item or in the open-file cache.",
        "`nginx gzip` and `h2o compress` compress for each request (nginx at its default, level 1, so its answer is "
        "longer); `gzip_static` and `send-compressed` send a file that somebody has compressed before.",
        "Compare the rows of the two tables: what is kept must cost no more than the page as it is.",
    ),
)
