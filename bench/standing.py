"""The rounds of a contestant and their result."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from contestants import Contestant


@dataclass(frozen=True)
class Round:
    """The result of one contestant in one round."""

    verdict: dict[str, Any]
    """The output of kirin-score. `Verdict` in bench/score/src/tally.rs has its fields."""

    server_share: float
    """The share of the servers' core that the contestant used."""

    load_share: float
    """The share of the load's core that the visitors used."""

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
        """Returns the reason of the first round that disqualified the contestant, or an empty
        string.
        """
        reasons = (round.verdict["disqualified"] for round in self.rounds)
        return next((reason for reason in reasons if reason), "")

    @property
    def score(self) -> int:
        return 0 if self.disqualified else self.median.score

    @property
    def median(self) -> Round:
        """Returns the round with the median score."""
        middle = median_low(round.score for round in self.rounds)
        return next(round for round in self.rounds if round.score == middle)
