"""The visitors of `make score` at an address, who come again until they are told to stop, and what
they have found.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from host import BenchError, Host
from load import run_generator

POSTS = ("sign-in", "public memo posted", "private memo posted", "sign-out")
"""The kinds of requests that must not be made twice. `KINDS` in bench/score/src/kind.rs has all."""

ENDED = "no answer: unexpected end of file"

LOST = tuple(f"{kind}: {answer}" for kind in POSTS for answer in ("status 502 and not 303", ENDED))
"""The faults by which a visitor learns that nobody knows whether a request was carried out. HAProxy
closes the connection if that to the machine had been used before.
"""


@dataclass(frozen=True)
class Crowd:
    """How many visitors come, for how long each time, and how patient they are."""

    readers: int
    members: int
    seconds: int
    patience: tuple[str, ...] = ()
    """More words of the command line of kirin-score."""


@dataclass(frozen=True)
class InProgress:
    """What machines had begun when they were killed, and nobody can end or repeat."""

    posts: int = 0
    """The most POST requests that members can have made."""
    responses: int = 0
    """Responses of which the balancer had passed on a part."""


def is_cut(reason: str) -> bool:
    """Returns whether a fault is the end of a response in its middle."""
    return reason.endswith(f": {ENDED}") and reason not in LOST


@dataclass
class Findings:
    """What visitors have found in all of their visits."""

    verdicts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return sum(verdict["requests"] for verdict in self.verdicts)

    @property
    def per_second(self) -> float:
        """Returns the right answers in a second."""
        right = self.requests - sum(verdict["faults"] for verdict in self.verdicts)
        return right / sum(verdict["seconds"] for verdict in self.verdicts)

    @property
    def breaches(self) -> int:
        """Returns how often a visitor saw data of another one, or data that is out of date."""
        return sum(verdict["breaches"] for verdict in self.verdicts)

    @property
    def reasons(self) -> Counter[str]:
        """Returns the faults with the number of each."""
        return sum((Counter(verdict["reasons"]) for verdict in self.verdicts), Counter())

    @property
    def lost_posts(self) -> int:
        """Returns how many requests were lost because nobody knows whether they were carried out."""
        return sum(self.reasons[reason] for reason in LOST)

    @property
    def cut(self) -> int:
        """Returns how many responses ended in their middle."""
        return sum(count for reason, count in self.reasons.items() if is_cut(reason))

    @property
    def failures(self) -> dict[str, int]:
        """Returns all other faults, with violations."""
        return {reason: count for reason, count in self.reasons.items() if reason not in LOST and not is_cut(reason)}

    @property
    def disqualified(self) -> str:
        """Returns why the contest has no winner here, or an empty string."""
        return next((verdict["disqualified"] for verdict in self.verdicts if verdict["disqualified"]), "")

    def complaint(self, in_progress: InProgress) -> str:
        """Returns what is not as it must be, or an empty string."""
        if self.failures:
            return "; ".join(f"{reason} ({count} times)" for reason, count in self.failures.items())
        if self.lost_posts > in_progress.posts:
            return f"{self.lost_posts} POST requests were lost, and {in_progress.posts} could have been in progress"
        if self.cut > in_progress.responses:
            return f"{self.cut} responses were cut, and {in_progress.responses} were in progress"
        return self.disqualified


class Visits:
    """Visitors at a port. Within the context they come again and again, and each time do something
    else. At its end they finish their visit.
    """

    def __init__(self, host: Host, port: int, facts: Path, files: Path, crowd: Crowd) -> None:
        self.host, self.crowd = host, crowd
        self.command: Sequence[str | Path] = (
            host.tool("kirin-score"), f"127.0.0.1:{port}", "--facts", facts, "--files", files,
            "--readers", str(crowd.readers), "--members", str(crowd.members),
            "--seconds", str(crowd.seconds), *crowd.patience,
        )  # fmt: skip
        self.findings = Findings()
        self.error: Exception | None = None
        self.is_last = threading.Event()
        self.thread = threading.Thread(target=self._come)

    def __enter__(self) -> Visits:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_last.set()
        self.thread.join()
        if self.error:
            raise self.error

    def _come(self) -> None:
        try:
            while not self.is_last.is_set() or not self.findings.verdicts:
                self._visit()
        except BenchError as error:
            self.error = error

    def _visit(self) -> None:
        seed = str(len(self.findings.verdicts) + 1)
        command = self.host.load_command(*self.command, "--seed", seed)
        self.findings.verdicts.append(json.loads(run_generator(command, self.crowd.seconds)))


def written(facts: Mapping[str, Any], host: Host) -> Path:
    """Writes down what visitors know about the site."""
    path = host.directory / "facts.json"
    path.write_text(json.dumps(facts))
    return path
