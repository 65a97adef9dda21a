#!/usr/bin/env python3
"""Simulates how often the trial of new code is decided wrongly, and how much it takes to decide.

    bench/trial_model.py                   # simulates for half a minute, prints the tables
    bench/trial_model.py --results /tmp    # also writes trial-model.md

The rule is that of `crates/kirin-workers/src/trial/verdict.rs`, written a second time; the tests of
both have the same table. A visitor belongs to one side, sends some requests, and counts once if one
of them fails. Visitors come in a random order. So the first failures of visitors are throws of a
coin, and the model draws only these: the number of visitors up to the next one that fails is
geometric.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from report import grid

RATIOS = (1.5, 2.0, 4.0, 10.0, 100.0)
DECISIVE = 1000.0

RUNS, RUNS_OF_EQUALS = 2000, 20_000
BASES = (0.0, 0.001, 0.01)
EXTRAS = (0.0, 0.005, 0.01, 0.02, 0.05)
RATES = (10, 100, 1000)
SHARES = (0.01, 0.05, 0.2, 0.5)
SECONDS = 120
"""The time of a trial in the tables."""

NEVER = 1 << 30


def evidence(new: int, old: int, share: float) -> float:
    """Returns how much likelier so many events are if they happen more often with the new code."""
    logarithms = (new * math.log(ratio) - (new + old) * math.log(1 - share + ratio * share) for ratio in RATIOS)
    return sum(math.exp(min(one, 700.0)) for one in logarithms) / len(RATIOS)


@cache
def fewest(share: float, old: int) -> int:
    """Returns the fewest events of the new code that decide, beside `old` of the old one."""
    new = fewest(share, old - 1) if old else 0
    while evidence(new, old, share) < DECISIVE:
        new += 1
    return new


@dataclass(frozen=True)
class Trial:
    """A trial. `base` is the share of requests that fail with the old code, and `extra` how many
    more fail with the new code.
    """

    base: float
    extra: float
    share: float = 0.05
    rate: float = 100.0
    visit: int = 4
    """The requests of a visitor."""

    @property
    def visitors(self) -> int:
        return round(self.rate * SECONDS / self.visit)


def given_up(trial: Trial, chance: random.Random) -> float | None:
    """Returns the number of requests to the new code after which it is given up. `None` if it is
    promoted.
    """
    fails = [1 - (1 - rate) ** trial.visit for rate in (trial.base, trial.base + trial.extra)]
    weights = [(1 - trial.share) * fails[0], trial.share * fails[1]]
    event = sum(weights)
    if event <= 0:
        return None
    is_new = weights[1] / event
    new, old, seen, limit = 0, 0, 0, fewest(trial.share, 0)
    while True:
        seen += 1 + (int(math.log(1 - chance.random()) / math.log1p(-event)) if event < 1 else 0)
        if seen > trial.visitors:
            return None
        if chance.random() < is_new:
            new += 1
            if new >= limit:
                return seen * trial.visit * trial.share
        else:
            old += 1
            limit = fewest(trial.share, old)


def outcomes(trial: Trial, runs: int, seed: int = 1) -> list[float | None]:
    chance = random.Random(seed)
    return [given_up(trial, chance) for _ in range(runs)]


def part_given_up(found: Sequence[float | None]) -> float:
    return sum(one is not None for one in found) / len(found)


def median_requests(found: Sequence[float | None]) -> str:
    """Returns how many requests the new code had got in the middle of the trials that gave it up."""
    decided = [one for one in found if one is not None]
    return f"{statistics.median(decided):,.0f}" if len(decided) * 100 >= len(found) else "-"


def row(trials: Sequence[Trial], runs: int) -> list[str]:
    """Returns the parts of the trials that give the new code up, and the requests until then."""
    found = [outcomes(trial, runs if trial.extra else runs * (RUNS_OF_EQUALS // RUNS)) for trial in trials]
    parts = [f"{part_given_up(one):.2%}" if not trial.extra else f"{part_given_up(one):.0%}" for one, trial in zip(found, trials, strict=True)]
    return [*parts, median_requests(found[-1])]


def percent(share: float) -> str:
    return f"{share * 100:g} %"


def faults_table(runs: int) -> str:
    """Returns the table of faults and traffic, with a share of 5 % and two minutes."""
    header = (
        "old code fails", "new code fails", *(f"given up at {rate:,}/s" for rate in RATES),
        "requests to the new code until then",
    )  # fmt: skip
    body = [
        [percent(base), percent(base + extra), *row([Trial(base, extra, rate=rate) for rate in RATES], runs)]
        for base in BASES
        for extra in EXTRAS
        if base or extra
    ]
    return grid(header, body)


def shares_table(runs: int) -> str:
    """Returns the table of shares: 100 requests a second, of which the old code fails for 0.1 %."""
    header = ("share", *(f"{percent(0.001 + extra)} fail" for extra in EXTRAS), "requests to the new code until then, last column")
    body = []
    for share in SHARES:
        trials = [replace(Trial(0.001, extra), share=share) for extra in EXTRAS]
        body.append([percent(share), *row(trials, runs)])
    return grid(header, body)


def visits_table(runs: int) -> str:
    """Returns the table of visitors with more or fewer requests; 1 % more fail, 100 a second."""
    body = []
    for visit in (1, 4, 20, 100):
        trials = [Trial(0.001, extra, visit=visit) for extra in (0.0, 0.01)]
        body.append([f"{visit}", *row(trials, runs)])
    return grid(("requests of a visitor", "equal code given up", "1 % more: given up", "requests until then"), body)


def report(runs: int) -> str:
    return "\n".join([
        "# The trial of new code: errors of the rule",
        "",
        f"Simulated by `bench/trial_model.py`: {runs:,} trials for each figure, and {runs * (RUNS_OF_EQUALS // RUNS):,} of equal code.",
        f"A trial lasts {SECONDS} s. The last column is the median of the trials that end with the old code.",
        "",
        "## Faults and traffic, share 5 %, four requests a visitor",
        "",
        faults_table(runs),
        "",
        "## Shares, 100 requests/s, the old code fails for 0.1 %",
        "",
        shares_table(runs),
        "",
        "## Requests of a visitor, 100 requests/s, share 5 %",
        "",
        visits_table(runs),
        "",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates the trial of new code.")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--results", type=Path, help="the directory of trial-model.md")
    arguments = parser.parse_args()
    if arguments.results:
        arguments.results.mkdir(parents=True, exist_ok=True)
    text = report(arguments.runs)
    print(text)
    if arguments.results:
        (arguments.results / "trial-model.md").write_text(text)


if __name__ == "__main__":
    main()
