#!/usr/bin/env python3
"""`make score-machines`: the memo example on three Kirins with one redis-server, behind a balancer.

The visitors of `make score` check every answer. Meanwhile machines are killed, or get a new program.
No visitor may see anything wrong, and no request may fail but those that a killed machine had
begun and that must not be made twice.

    bench/contest_machines.py                       # all of it, with figures: some ten minutes
    bench/contest_machines.py --only kill --balancer haproxy
    bench/contest_machines.py --quick --build       # as `make test-long` has it
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import balancers
import contest
import contestants
import machines
import machines_report
import measure
import report
import visits
from contest import whole
from host import BENCH, REPOSITORY, BenchError, Cores, Host, Server
from incidents import INCIDENTS, Scene
from machines_report import Course, Pace
from visits import Crowd, InProgress, Visits

BALANCERS = {"kirin": balancers.kirin, "haproxy": balancers.haproxy}

PATIENT_SECONDS = 60

PATIENCE = ("--appears-within", str(PATIENT_SECONDS), "--answer-within", str(PATIENT_SECONDS))

QUICK = Crowd(readers=3, members=3, seconds=15, patience=PATIENCE)
"""The visitors of a test, which a busy machine must not disturb."""

QUICK_STEP = 60


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if options.build:
        cargo = os.environ.get("CARGO", "cargo")
        subprocess.run([cargo, "build", "-q", "-p", "kirin-score"], cwd=REPOSITORY, check=True)
    cores = Cores(options.server_core, options.load_core)
    load_before = os.getloadavg()[0]
    if options.quick:
        return quick(cores, options)
    courses = [
        course(cores, name, incident, options)
        for name in options.balancer
        for incident in INCIDENTS
        if not options.only or incident in options.only
    ]
    paces = [] if options.only else [pace(cores, title, start, options) for title, start in PACES.items()]
    crowd = f"kirin-score --readers {options.readers} --members {options.members}"
    text = machines_report.markdown(courses, paces, report.machine(cores, load_before, crowd))
    print(text)
    if not options.only:
        options.results.mkdir(parents=True, exist_ok=True)
        (options.results / "many-machines-memo.md").write_text(text)
    return 1 if any(one.complaint for one in courses) else 0


def quick(cores: Cores, options: argparse.Namespace) -> int:
    """Runs all incidents after each other, with few visitors."""
    options.step = QUICK_STEP
    balancer = partial(balancers.kirin, health_seconds=PATIENT_SECONDS)
    with visited(cores, options, balancer, QUICK, calm=True) as (scene, visiting):
        for incident in INCIDENTS.values():
            incident.happens(scene)
        in_progress = InProgress(QUICK.members * sum(one.kills for one in INCIDENTS.values()), scene.balancer.cut())
    found = visiting.findings
    complaint = found.complaint(in_progress)
    print(f"{found.requests} requests, {found.lost_posts} posts lost, {found.cut} responses cut: {complaint or 'as it must be'}")
    return 1 if complaint else 0


def course(cores: Cores, balancer: str, name: str, options: argparse.Namespace) -> Course:
    """Runs one incident behind one balancer."""
    crowd, incident = crowd_of(options), INCIDENTS[name]
    with visited(cores, options, BALANCERS[balancer], crowd) as (scene, visiting):
        incident.happens(scene)
        in_progress = InProgress(crowd.members * incident.kills, scene.balancer.cut() if incident.kills else 0)
    complaint = visiting.findings.complaint(in_progress)
    print(f"{balancer}, {name}: {visiting.findings.requests:,} requests: {complaint or 'no fault'}", file=sys.stderr, flush=True)
    about = scene.balancer.server.about
    return Course(balancer, incident.title, visiting.findings, complaint, about)


@contextmanager
def visited(
    cores: Cores,
    options: argparse.Namespace,
    balancer: Callable[..., balancers.Balancer],
    crowd: Crowd,
    calm: bool = False,
) -> Iterator[tuple[Scene, Visits]]:
    """Starts everything, and lets visitors come. At the end of the context they have seen the state
    that it has left.
    """
    with Host(cores, options.kirin.resolve(), options.tools.resolve()) as host:
        site = contest.seeded(host)
        facts = visits.written(contest.known(site.database), host)
        running, _ = machines.started(host, site, calm=calm)
        front = balancer(host, running)
        visiting = Visits(host, front.server.port, facts, site.public, crowd)
        is_clean = False
        try:
            with visiting:
                yield Scene(running, front, options.step), visiting
            is_clean = not visiting.findings.failures
        finally:
            if not is_clean:
                print(warnings(host.directory), file=sys.stderr, flush=True)


def warnings(directory: Path) -> str:
    """Returns the warnings and errors in the logs of a run that has failed."""
    lines = [
        f"{path.name}: {line}"
        for path in sorted(directory.glob("*.log"))
        for line in path.read_text(errors="replace").splitlines()
        if " WARN " in line or " ERROR " in line or "panicked" in line
    ]
    return "\n".join(lines)


def pace(cores: Cores, title: str, start: Callable[[Host, contestants.Site], Server], options: argparse.Namespace) -> Pace:
    """Measures how many requests are answered, in rounds with servers just started."""
    crowd = crowd_of(options)
    found = Pace(title)
    for number in range(options.rounds):
        with Host(cores, options.kirin.resolve(), options.tools.resolve()) as host:
            site = contest.seeded(host)
            facts = visits.written(contest.known(site.database), host)
            server = start(host, site)
            cpu, load_cpu = measure.cpu_seconds(server.roots), measure.ended_children_seconds()
            with Visits(host, server.port, facts, site.public, crowd) as visiting:
                visiting.is_last.set()
            cpu = measure.cpu_seconds(server.roots) - cpu
            load_cpu = measure.ended_children_seconds() - load_cpu
        found.add(visiting.findings, cpu / crowd.seconds, load_cpu / crowd.seconds, server.about)
        print(f"{title}: round {number + 1}: {visiting.findings.per_second:,.0f}/s", file=sys.stderr, flush=True)
    return found


def alone(host: Host, site: contestants.Site) -> Server:
    """Starts one Kirin without anything around it."""
    return contestants.kirin_pushed(host, "alone", site)


def several(count: int, balancer: Callable[..., balancers.Balancer]) -> Callable[[Host, contestants.Site], Server]:
    """Returns what starts so many machines behind a balancer."""

    def start(host: Host, site: contestants.Site) -> Server:
        running, origin = machines.started(host, site, count=count)
        front = balancer(host, running).server
        roots = [*front.roots, *origin.roots, *(machine.pid for machine in running)]
        return replace(front, roots=roots, about=f"{front.about}; {origin.about}")

    return start


PACES = {
    "one Kirin": alone,
    "one Kirin with a redis-server, behind a Kirin": several(1, balancers.kirin),
    "three Kirins with a redis-server, behind a Kirin": several(machines.COUNT, balancers.kirin),
    "three Kirins with a redis-server, behind HAProxy": several(machines.COUNT, balancers.haproxy),
}


def crowd_of(options: argparse.Namespace) -> Crowd:
    return Crowd(options.readers, options.members, options.seconds)


def parse() -> argparse.Namespace:
    """Parses the command line."""
    is_quick = "--quick" in sys.argv
    release = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "release"
    debug = release.parent / "debug"
    program = os.environ.get("KIRIN_BINARY", debug / "kirin") if is_quick else release / "kirin"
    everywhere = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    parser = argparse.ArgumentParser(
        description="The memo example on three machines.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="all incidents in a minute, without figures: a test")
    parser.add_argument("--build", action="store_true", help="build a kirin-score for --quick")
    parser.add_argument("--kirin", type=Path, default=program, metavar="PATH", help="the kirin program")
    parser.add_argument(
        "--tools", type=Path, default=debug if is_quick else release, metavar="DIR", help="where kirin-score is"
    )
    parser.add_argument("--only", type=some(INCIDENTS), default=[], metavar="NAME,…", help=f"some of {', '.join(INCIDENTS)}, without figures")
    parser.add_argument("--balancer", type=some(BALANCERS), default=list(BALANCERS), metavar="NAME,…", help=f"some of {', '.join(BALANCERS)}")
    parser.add_argument("--rounds", type=whole, default=3, help="rounds of each row of figures")
    parser.add_argument("--seconds", type=whole, default=20, help="length of a visit")
    parser.add_argument("--step", type=whole, default=3000, help="requests between two events")
    parser.add_argument("--readers", type=whole, default=16, help="visitors without an account")
    parser.add_argument("--members", type=whole, default=8, help="visitors who sign in")
    parser.add_argument("--server-core", default=everywhere if is_quick else "0", metavar="CORE", help="where the servers run")
    parser.add_argument("--load-core", default=everywhere if is_quick else "1", metavar="CORE", help="where the visitors run")
    parser.add_argument("--results", type=Path, default=BENCH / "results", metavar="DIR", help="where many-machines-memo.md goes")
    return parser.parse_args()


def some(known: Sequence[str] | dict[str, object]) -> Callable[[str], list[str]]:
    """Returns a parser of a list of known names."""

    def names(text: str) -> list[str]:
        found = text.split(",")
        if unknown := [name for name in found if name not in known]:
            raise argparse.ArgumentTypeError(f"there is no {unknown[0]}, only {', '.join(known)}")
        return found

    return names


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"contest_machines.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
