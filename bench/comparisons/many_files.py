"""many-files: thousands of static files, each requested in turn."""

from __future__ import annotations

from pathlib import Path

import page
from comparison import Budget, Comparison, Entrant
from host import Host
from load import HttpLoad
from peers import h2o, kirin, nginx

COUNTS = (5_000, 50_000)

PAGES_PATH = "/section%d/page%d.html"
"""The path of a page: its number modulo 100, and its number."""

NGINX_FILES = 18_000
"""The files that nginx keeps open: nearly all descriptors that the machine of the results allows."""

SIZED = """
[open_file_cache]
paths = 50000
memory = "512MB"
"""


def body(number: int) -> bytes:
    """Returns a page of 1 to 10 KB."""
    return page.html(1024 + number * 7919 % 9217)


def public(host: Host) -> Path:
    """Creates the directory that every server serves."""
    directory = host.directory / "public"
    if not directory.exists():
        for section in range(100):
            (directory / f"section{section}").mkdir(parents=True)
        for number in range(1, max(COUNTS) + 1):
            (directory / (PAGES_PATH % (number % 100, number))[1:]).write_bytes(body(number))
    return directory


COMPARISON = Comparison(
    name="many-files",
    question="Static files of 1 to 10 KB in 100 directories, each requested in turn: a cache that takes each of them would find none.",
    entrants=(
        Entrant("kirin", "kirin", lambda host: kirin.start(host, places=(f"files:{public(host)}",))),
        Entrant(
            "kirin",
            "kirin, 50,000 paths",
            lambda host: kirin.start(host, "kirin-sized", places=(f"files:{public(host)}",), more=SIZED),
        ),
        Entrant(
            "kirin",
            "kirin, 50,000 paths, validity 60 s",
            lambda host: kirin.start(
                host, "kirin-valid", places=(f"files:{public(host)}",), more=SIZED + 'validity = "60s"\n'
            ),
        ),
        Entrant("h2o", "h2o", lambda host: h2o.static_files(host, public(host))),
        Entrant("nginx", "nginx", lambda host: nginx.files_uncached(host, public(host))),
        Entrant(
            "nginx",
            "nginx, open_file_cache",
            lambda host: nginx.files_many(host, public(host), NGINX_FILES),
        ),
    ),
    loads=tuple(
        HttpLoad(
            f"{count:,} files in turn, 64 connections kept",
            path=PAGES_PATH % (1, 1),
            expect=body(1),
            pages=count,
            pages_path=PAGES_PATH,
        )
        for count in COUNTS
    ),
    budgets=(
        Budget("≤ nginx with open_file_cache", "kirin, 50,000 paths", "nginx, open_file_cache", 1.0),
        Budget("≤ the same with its validity", "kirin, 50,000 paths, validity 60 s", "nginx, open_file_cache", 1.0),
        Budget("≤ nginx without", "kirin", "nginx", 1.0),
    ),
    notes=(
        "`kirin` has the defaults: 10,000 paths and 64 MB, which is full at some 8,000 of these files. It keeps those that it has.",
        "nginx holds a descriptor for each file. The machine allows 20,000 for a process, so nginx cannot hold 50,000.",
        "nginx looks at a file again after 60 s (its default), Kirin after 1 s (its default). The slower the machine, the larger "
        "the share of requests for which Kirin looks: at 10,000 requests/s each of 50,000 files is requested once in 5 s.",
        "Before the rounds each server answers every page once.",
        "wrk picks a new request each time, so its own cost is higher than in `small-file`.",
    ),
)
