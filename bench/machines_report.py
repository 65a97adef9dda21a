"""Writes the page about the memo example on three machines: what visitors have found while machines
were killed or replaced, and how many requests were answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import report
from visits import Findings

QUESTION = (
    "The memo example on three Kirins with one redis-server, behind a balancer: does anybody see anything wrong, does a "
    "request fail, and what does it cost? `make score-machines`. The visitors and their checks are those of "
    "[`make score`](../score/README.md)."
)

NOTES = (
    "Each machine has its own directory, sockets and four workers. The database is one SQLite file for all, which real "
    "machines cannot share.",
    "The balancer brings a session to the same machine again (a hash of its cookie), checks health each second, and has read "
    "the bodies of requests before it sends them on.",
    "A *violation* is what disqualifies in `make score`: data of another visitor, or data that is out of date. A *failure* is "
    "any other wrong answer, or none.",
    "*Posts lost* are POST requests that a killed machine had begun. Kirin answers them 502, because nobody knows whether they "
    "were carried out. HAProxy closes the connection of some without an answer. Each member has at most one of them at a time. "
    "*Responses cut* are those of which the balancer had passed on a part when the machine was killed; a page with an include "
    "waits for the application in its middle. All other requests of a killed machine are sent to another one.",
)


@dataclass(frozen=True)
class Course:
    """One incident behind one balancer, and what visitors have found."""

    balancer: str
    title: str
    findings: Findings
    complaint: str
    about: str


@dataclass
class Pace:
    """The rounds of one row of figures."""

    title: str
    per_second: list[float] = field(default_factory=list)
    shares: list[tuple[float, float]] = field(default_factory=list)
    requests: int = 0
    faults: int = 0
    about: str = ""

    def add(self, findings: Findings, server_share: float, load_share: float, about: str) -> None:
        self.per_second.append(findings.per_second)
        self.shares.append((server_share, load_share))
        self.requests += findings.requests
        self.faults += sum(findings.reasons.values())
        self.about = about


def markdown(courses: Sequence[Course], paces: Sequence[Pace], machine: str) -> str:
    """Returns the complete page."""
    parts = ["# many-machines-memo", QUESTION, machine, "## While something happens", incidents(courses)]
    parts += [f"**{one.balancer}, {one.title}**: {one.complaint}." for one in courses if one.complaint]
    if paces:
        parts += ["## Requests a second", figures(paces)]
    parts += ["## How to read it", "\n".join(f"- {note}" for note in NOTES)]
    about = {one.balancer: one.about for one in courses} | {one.title: one.about for one in paces}
    parts += ["## Configurations", "\n".join(f"- **{name}**: {text}" for name, text in about.items())]
    return "\n\n".join(parts) + "\n"


def incidents(courses: Sequence[Course]) -> str:
    header = ["what happens", "balancer", "requests", "violations", "failures", "posts lost", "responses cut"]
    body = [
        [
            one.title,
            one.balancer,
            f"{one.findings.requests:,}",
            f"{one.findings.breaches:,}",
            f"{sum(one.findings.failures.values()) - one.findings.breaches:,}",
            f"{one.findings.lost_posts:,}",
            f"{one.findings.cut:,}",
        ]
        for one in courses
    ]
    return report.grid(header, body)


def figures(paces: Sequence[Pace]) -> str:
    header = ["servers", "right answers/s", "each round", "requests", "faults", "servers' core", "visitors' core"]
    body = [
        [
            one.title,
            f"{median(one.per_second):,.0f}",
            ", ".join(f"{each:,.0f}" for each in one.per_second),
            f"{one.requests:,}",
            f"{one.faults:,}",
            f"{median(share for share, _ in one.shares):.0%}",
            f"{median(share for _, share in one.shares):.0%}",
        ]
        for one in paces
    ]
    return report.grid(header, body)
