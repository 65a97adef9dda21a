"""A contestant's rounds and what they come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from contestants import Contestant


@dataclass(frozen=True)
class Round:
    """One contestant, once."""

    verdict: dict[str, Any]
    """What kirin-score says; `Verdict` in bench/score/src/tally.rs has its fields."""

    server_share: float
    """Of the servers' core, what the contestant used."""

    load_share: float
    """Of the load's core, what the visitors used."""

    @property
    def score(self) -> int:
        return int(self.verdict["score"])


@dataclass
class Standing:
    """A contestant and its rounds."""

    contestant: Contestant
    rounds: list[Round] = field(default_factory=list)
    about: str = ""

    @property
    def disqualified(self) -> str:
        """Why, if any round has disqualified it."""
        reasons = (round.verdict["disqualified"] for round in self.rounds)
        return next((reason for reason in reasons if reason), "")

    @property
    def score(self) -> int:
        return 0 if self.disqualified else self.median.score

    @property
    def median(self) -> Round:
        """The round in the middle."""
        middle = median_low(round.score for round in self.rounds)
        return next(round for round in self.rounds if round.score == middle)
