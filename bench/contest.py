#!/usr/bin/env python3
"""`make score`: a contest with the memo example, like ISUCON. bench/score/README.md has its rules.

    bench/contest.py
    bench/contest.py --rounds 1 --seconds 3 --only pushed
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import contest_chart
import contest_report
import measure
import report
from contestants import CONTESTANTS, MEMO, Site
from host import BENCH, REPOSITORY, BenchError, Cores, Host
from load import run_generator
from standing import Round, Standing

ACCOUNTS = 2000
"""The number of accounts. Each session of a round takes a new one while there are any, because a
member's page lists everything that the member has written.
"""

PASSWORD = "demo"


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, {int(options.load_core)})
    cores = Cores(options.server_core, options.load_core)
    load_before = os.getloadavg()[0]
    standings = [
        Standing(contestant)
        for contestant in CONTESTANTS
        if not options.only or contestant.key in options.only
    ]
    with Host(cores, options.kirin.resolve(), options.tools.resolve()) as host:
        site = seeded(host)
        facts = host.directory / "facts.json"
        facts.write_text(json.dumps(known(site.database)))
        for number in range(1, options.rounds + 1):
            for standing in standings:
                name = f"{standing.contestant.key}-{number}"
                standing.rounds.append(run_round(standing, host, name, site.copy(host.directory / name), facts, options))
                said = standing.rounds[-1]
                print(
                    f"score: round {number}/{options.rounds}: {standing.contestant.title}: {said.score:,} "
                    f"{said.verdict['disqualified'] or ''}",
                    file=sys.stderr,
                    flush=True,
                )
    visitors = f"kirin-score --readers {options.readers} --members {options.members} --seed {options.seed}"
    text = contest_report.markdown(standings, report.machine(cores, load_before, visitors), options.rounds, options.seconds)
    print(text)
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "score.md").write_text(text)
    (options.results / "score.svg").write_text(contest_chart.svg(contest_report.bars(standings), "make score: points on the memo example"))
    return 1 if any(standing.disqualified for standing in standings) else 0


def seeded(host: Host) -> Site:
    """Copies the application from the repository. The copy has a new database with accounts for the
    visitors.
    """
    directory = host.directory / "site"
    shutil.copytree(MEMO, directory, ignore=shutil.ignore_patterns("data", "t"))
    site = Site(directory)
    site.database.parent.mkdir()
    run_seed(site)
    with contextlib.closing(sqlite3.connect(site.database)) as database, database:
        add_accounts(database)
    with contextlib.closing(sqlite3.connect(site.database)) as database:
        # Contestants get a copy of the database as one file.
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return site


def run_seed(site: Site) -> None:
    """Runs examples/memo/seed.pl."""
    done = subprocess.run(
        ["perl", "seed.pl"],
        cwd=site.directory,
        env={**os.environ, "MEMO_DATABASE": str(site.database)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BenchError(f"seed.pl failed:\n{done.stderr}{done.stdout}")


def add_accounts(database: sqlite3.Connection) -> None:
    """Adds accounts with the password of the seeded one. To compute a hash for each would take a
    minute.
    """
    (found,) = database.execute("SELECT password_hash FROM user WHERE name = ?", (PASSWORD,)).fetchone()
    database.executemany(
        "INSERT INTO user (name, password_hash, created_at) VALUES (?, ?, 0)",
        ((name, found) for name in names()),
    )


def names() -> list[str]:
    """Returns the names of the visitors' accounts. No name is the beginning of another."""
    return [f"guest{number:05}" for number in range(ACCOUNTS)]


def known(path: Path) -> dict[str, Any]:
    """Returns the facts about the site that visitors know: `Facts` in bench/score/src/facts.rs."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute(
            "SELECT memo.id, memo.title, user.name FROM memo JOIN user ON user.id = memo.user_id "
            "WHERE public_number IS NOT NULL ORDER BY memo.id"
        ).fetchall()
    memos = [{"id": number, "words": plain_words(title), "author": author} for number, title, author in rows]
    return {"memos": memos, "names": names(), "password": PASSWORD}


def plain_words(title: str) -> str:
    """Returns the longest part of a title that HTML escaping does not change."""
    return max(re.findall(r"[A-Za-z0-9 ]+", title) or [""], key=len).strip()


def run_round(
    standing: Standing, host: Host, name: str, site: Site, facts: Path, options: argparse.Namespace
) -> Round:
    """Runs one contestant from its start to its end. No other one runs on the machine."""
    with Host(host.cores, host.kirin, host.tools) as own:
        server = standing.contestant.start(own, name, site)
        standing.about = server.about
        cpu, load_cpu = measure.cpu_seconds(server.roots), measure.ended_children_seconds()
        said = run_generator(
            own.load_command(
                own.tool("kirin-score"), f"127.0.0.1:{server.port}", "--facts", facts, "--files", site.public,
                "--seconds", str(options.seconds), "--readers", str(options.readers),
                "--members", str(options.members), "--seed", str(options.seed),
            ),
            options.seconds,
        )  # fmt: skip
        cpu = measure.cpu_seconds(server.roots) - cpu
        load_cpu = measure.ended_children_seconds() - load_cpu
    verdict = json.loads(said)
    return Round(verdict, cpu / verdict["seconds"], load_cpu / verdict["seconds"])


def parse() -> argparse.Namespace:
    """Parses the command line."""
    release = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
    parser = argparse.ArgumentParser(
        description="A contest on the memo example; see bench/score/README.md.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    keys = ", ".join(contestant.key for contestant in CONTESTANTS)
    parser.add_argument("--kirin", type=Path, default=release / "kirin", metavar="PATH", help="the kirin program")
    parser.add_argument("--tools", type=Path, default=release, metavar="DIR", help="where kirin-score is")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], metavar="NAME,…", help=f"some of {keys}"
    )
    parser.add_argument("--rounds", type=whole, default=3, help="interleaved rounds")
    parser.add_argument("--seconds", type=whole, default=20, help="length of one round for one contestant")
    parser.add_argument("--readers", type=whole, default=16, help="visitors without an account")
    parser.add_argument("--members", type=whole, default=8, help="visitors who sign in")
    parser.add_argument("--seed", type=whole, default=1, help="what visitors ask for is the same for the same seed")
    parser.add_argument("--server-core", default="0", metavar="CORE", help="where the contestants run")
    parser.add_argument("--load-core", default="1", metavar="CORE", help="where the visitors run")
    parser.add_argument(
        "--results", type=Path, default=BENCH / "results", metavar="DIR", help="where score.md and score.svg go"
    )
    return parser.parse_args()


def whole(text: str) -> int:
    """Parses an integer of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1 is needed")
    return number


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"contest.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
