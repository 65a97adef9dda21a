#!/usr/bin/env python3
"""Compares `kirin log sum` with alp on logs of 1 GB, on one core.

    bench/log_sum.py                      # all formats, three rounds; about a quarter of an hour
    bench/log_sum.py --megabytes 50 --rounds 1 --formats json --results /tmp

The script generates each log (always the same one), runs both programs in turns on one core, and
deletes the log. It checks that both count the same requests. It writes the table to
`bench/results/log-sum.md`.

alp is a Go program. The script builds it with `go` from the module proxy, unless `--alp` names it.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ALP_VERSION = "v1.0.21"
AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "curl/8.9.1",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
)
# The patterns of the site of the log, for alp, which does not find them by itself.
ALP_PATTERNS = ("/memo/[0-9]+$", "/memo/[0-9]+/edit$", "/user/[a-z0-9]+$", "/recent/[0-9]+$", "/api/v1/[a-z]+/[0-9]+$", "/static/.+")
# The default expression of alp, with the place that Kirin writes.
ALP_COMBINED = (
    r'^(\S+)\s\S+\s+(\S+\s+)+\[(?P<time>[^]]+)\]\s"(?P<method>\S*)\s?(?P<uri>(?:[^"]*(?:\\")?)*)\s([^"]*)"'
    r'\s(?P<status>\S+)\s(?P<body_bytes>\S+)\s"((?:[^"]*(?:\\")?)*)"\s"(?:.+)"\s\S+\s(?P<response_time>\S+)$'
)


def target(rng: random.Random) -> tuple[str, str, str]:
    """Returns method, target and place of a request to a site."""
    kind = rng.random()
    number = int(rng.paretovariate(0.7)) % 1_000_000
    if kind < 0.45:
        return "GET", f"/memo/{number}", "store" if number < 1000 else "app:web"
    if kind < 0.55:
        return "GET", f"/recent/{number % 500}?sort=date&per=20", "store"
    if kind < 0.65:
        return "GET", f"/user/user{number % 50_000}x", "app:web"
    if kind < 0.72:
        return "POST", f"/memo/{number}/edit", "app:web"
    if kind < 0.82:
        return "GET", f"/api/v1/{rng.choice(('items', 'orders', 'carts'))}/{number}?expand=all", "proxy:api"
    if kind < 0.95:
        return "GET", f"/static/{rng.choice(('app', 'site', 'base'))}-{number % 90}x.{rng.choice(('css', 'js'))}", "files"
    return rng.choice((("GET", "/", "store"), ("GET", "/login", "app:web"), ("POST", "/login", "app:web"), ("GET", "/search?q=memo", "app:web")))


def line(kind: str, rng: random.Random, number: int) -> str:
    """Returns a line of a log."""
    method, uri, place = target(rng)
    status = 200 if rng.random() < 0.93 else rng.choice((302, 304, 403, 404, 500, 502))
    size = rng.randrange(200, 60_000)
    seconds = f"{min(rng.lognormvariate(-6, 1.5), 30):.6f}"
    host, agent = f"192.0.2.{rng.randrange(256)}", rng.choice(AGENTS)
    clock = f"{number // 36_000 % 24:02}:{number // 600 % 60:02}:{number // 10 % 60:02}"
    referer = f"https://example.org/recent/{rng.randrange(50)}"
    if kind == "combined":
        return f'{host} - - [22/Nov/2026:{clock} +0000] "{method} {uri} HTTP/1.1" {status} {size} "{referer}" "{agent}" {place} {seconds}\n'
    moment = f"2026-11-22T{clock}.123+00:00"
    if kind == "ltsv":
        return (
            f"time:{moment}\thost:{host}\tuser:-\tmethod:{method}\turi:{uri}\tprotocol:HTTP/1.1\tstatus:{status}\tsize:{size}"
            f"\treqtime:{seconds}\tvhost:example.org\treferer:{referer}\tua:{agent}\tplace:{place}\tcache:-\tend:whole\n"
        )
    return (
        f'{{"time":"{moment}","host":"{host}","method":"{method}","uri":"{uri}","protocol":"HTTP/1.1","status":{status},"size":{size}'
        f',"reqtime":{float(seconds)},"vhost":"example.org","referer":"{referer}","ua":"{agent}","place":"{place}","end":"whole"}}\n'
    )


def generate(path: Path, kind: str, size: int) -> int:
    """Writes a log of at least `size` bytes. Returns the number of its lines. The lines repeat
    after 20 MB."""
    rng = random.Random(16)
    block, count = io.StringIO(), 0
    while block.tell() < min(size, 20_000_000):
        block.write(line(kind, rng, count))
        count += 1
    data = block.getvalue().encode()
    repeats = -(-size // len(data))
    with path.open("wb") as f:
        for _ in range(repeats):
            f.write(data)
    return count * repeats


@dataclass
class Run:
    """What a program needed."""

    seconds: float
    cpu: float
    memory: int


def peak_memory(pid: int) -> int:
    """Returns the most bytes that a process had resident since it became this program, or 0."""
    for row in Path(f"/proc/{pid}/status").read_text().splitlines():
        if row.startswith("VmHWM:"):
            return int(row.split()[1]) * 1024
    return 0


def run(core: int, command: list[str]) -> tuple[Run, str]:
    """Runs a command on a core. Returns what it needed, and its output."""
    with tempfile.TemporaryFile() as output:
        start = time.monotonic()
        process = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=output)
        memory = 0
        while True:
            # Not ru_maxrss, which begins with the memory of this script.
            memory = peak_memory(process.pid) or memory
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            time.sleep(0.005)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"{command[0]} ended with {process.returncode}")
        output.seek(0)
        return Run(seconds, usage.ru_utime + usage.ru_stime, memory), output.read().decode()


def kirin(binary: str, path: Path, *_: str) -> list[str]:
    """Returns the command of Kirin."""
    return [binary, "log", "sum", str(path), "--output", "csv"]


def alp(binary: str, path: Path, kind: str, *patterns: str) -> list[str]:
    """Returns the command of alp, with the labels and the expression for Kirin's log."""
    labels = {
        "combined": ["regexp", "--pattern", ALP_COMBINED],
        "ltsv": ["ltsv"],
        "json": ["json", "--reqtime-key", "reqtime", "--restime-key", "reqtime", "--body-bytes-key", "size"],
    }[kind]
    command = [binary, *labels, "--file", str(path), "--format", "csv", "--sort", "sum", "-r", "--limit", "1000000"]
    return [*command, "--percentiles", "50,95,99", *(["-m", ",".join(patterns)] if patterns else [])]


def requests(output: str) -> int:
    """Returns the sum of the column of counts."""
    rows = list(csv.DictReader(io.StringIO(output)))
    column = next(name for name in rows[0] if name.lower() == "count")
    return sum(int(row[column]) for row in rows)


def build_alp(directory: Path) -> str:
    """Builds alp from its Go module."""
    subprocess.run(["go", "mod", "init", "alp-for-kirin"], cwd=directory, check=True, capture_output=True)
    subprocess.run(["go", "get", f"github.com/tkuchiki/alp@{ALP_VERSION}"], cwd=directory, check=True, capture_output=True)
    program = directory / "alp"
    command = ["go", "build", "-mod=mod", "-o", str(program), "github.com/tkuchiki/alp/cmd/alp"]
    subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return str(program)


def measure(kind: str, options: argparse.Namespace, directory: Path, alp_binary: str) -> list[str]:
    """Measures one format. Returns the section of the report."""
    path = directory / f"{kind}.log"
    lines = generate(path, kind, options.megabytes * 1_000_000)
    size = path.stat().st_size
    entrants: dict[str, Callable[[], list[str]]] = {
        "kirin log sum": lambda: kirin(options.kirin, path),
        "alp with patterns": lambda: alp(alp_binary, path, kind, *ALP_PATTERNS),
        "alp without patterns": lambda: alp(alp_binary, path, kind),
    }
    if options.only:
        entrants = {name: entrants[name] for name in options.only.split(",")}
    runs: dict[str, list[Run]] = {name: [] for name in entrants}
    try:
        with path.open("rb") as f:
            while f.read(1 << 24):
                pass
        for number in range(options.rounds):
            for name, command in entrants.items():
                one, output = run(options.core, command())
                if requests(output) != lines:
                    sys.exit(f"{name} counted {requests(output)} of {lines} requests")
                print(f"{kind} {number + 1} {name}: {one.seconds:.2f} s, CPU {one.cpu:.2f} s, {one.memory / 1e6:.0f} MB", flush=True)
                runs[name].append(one)
    finally:
        path.unlink()
    return section_of(kind, size, lines, runs)


def section_of(kind: str, size: int, lines: int, runs: dict[str, list[Run]]) -> list[str]:
    """Returns the section of the report for a format."""
    section = [f"## {kind}: {size / 1e9:.2f} GB, {lines:,} lines of {size // lines} bytes", ""]
    section += ["| program | seconds | CPU seconds | MB per CPU second | × Kirin's seconds | × CPU seconds | peak memory | CPU seconds of each round |", "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"]
    ours = statistics.median(one.seconds for one in runs["kirin log sum"])
    our_cpu = statistics.median(one.cpu for one in runs["kirin log sum"])
    for name, all_runs in runs.items():
        seconds = statistics.median(one.seconds for one in all_runs)
        cpu = statistics.median(one.cpu for one in all_runs)
        memory = statistics.median(one.memory for one in all_runs)
        rounds = ", ".join(f"{one.cpu:.2f}" for one in all_runs)
        section.append(f"| {name} | {seconds:.2f} | {cpu:.2f} | {size / cpu / 1e6:,.0f} | {seconds / ours:.1f} | {cpu / our_cpu:.1f} | {memory / 1e6:.0f} MB | {rounds} |")
    best = min(statistics.median(one.cpu for one in all_runs) for name, all_runs in runs.items() if name.startswith("alp"))
    ratio = best / our_cpu
    section += ["", f"Budget: at least 5 × the speed of alp at its best, by CPU seconds: {ratio:.1f} — {'kept' if ratio >= 5 else 'missed'}.", ""]
    return section


NOTES = [
    "## How to read it",
    "",
    "- On a machine that does other things too, CPU seconds are the figure to compare.",
    "- The log is in the page cache. It is what Kirin writes, and its lines repeat after 20 MB. Both programs must count every line, or the run fails.",
    "- alp with patterns gets six regular expressions for the site (`-m`), so its table has the rows that Kirin finds by itself. Without them it has a row for each path.",
    "- alp keeps every duration and its percentiles are exact. Those of Kirin are of a histogram, at most 1.6 % off; its sums, averages, minima and maxima are exact.",
    "- alp's combined lines are parsed by a regular expression: its default one, with a word for the place.",
    "- Kirin's table also has the place and the hit ratio. alp's has the standard deviation.",
    f"- alp is one process of several threads, but on one core here. Its commands: `alp {' '.join(alp('', Path('FILE'), 'json', *ALP_PATTERNS)[1:])}`, and the like.",
    "",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kirin", default=str(BENCH.parent / "target/release/kirin"), help="the program")
    parser.add_argument("--alp", help="a built alp; default: build it")
    parser.add_argument("--formats", default="combined,ltsv,json")
    parser.add_argument("--only", help="entrants, such as 'kirin log sum,alp with patterns'; default: all")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--results", type=Path, default=BENCH / "results")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    cpu = next((row.split(":")[1].strip() for row in Path("/proc/cpuinfo").read_text().splitlines() if row.startswith("model name")), "")
    report = [
        "# log-sum",
        "",
        "How long does it take to sum up an access log of 1 GB by method and URL pattern, with percentiles?",
        "",
        f"- {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; Linux {platform.release()}; {cpu}, {os.cpu_count()} cores; each program on core {options.core}",
        f"- interleaved rounds: {options.rounds}; medians; load average when it began: {load:.2f}",
        f"- {subprocess.check_output([options.kirin, '--version'], text=True).strip()}; alp {ALP_VERSION}, built with {subprocess.check_output(['go', 'version'], text=True).split()[2]}",
        "",
    ]
    with tempfile.TemporaryDirectory(prefix="kirin-log-sum-") as name:
        directory = Path(name)
        alp_binary = options.alp or build_alp(directory)
        for kind in options.formats.split(","):
            report += measure(kind, options, directory, alp_binary)
    report += NOTES
    text = "\n".join(report)
    print(text)
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "log-sum.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
