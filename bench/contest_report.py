"""Writes the report of the contest in Markdown: scores with ratios, requests and latencies by kind,
faults, and configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import report
from contest_chart import Bar
from standing import Standing

QUESTION = (
    "The memo example under visitors who never wait: readers, and members who sign in, write and sign out. "
    "Every answer is checked; [bench/score/README.md](../score/README.md) has the rules and the points."
)


def bars(standings: Sequence[Standing]) -> list[Bar]:
    """Returns the contestants for the picture."""
    return [
        Bar(one.contestant.title, one.score, "disqualified" if one.disqualified else ratio(one, standings[0]))
        for one in standings
    ]


def ratio(one: Standing, first: Standing) -> str:
    """Returns the ratio of the score to that of the first contestant."""
    return f"× {one.score / first.score:.2f}" if first.score else ""


def markdown(standings: Sequence[Standing], machine: str, rounds: int, seconds: int) -> str:
    """Returns the complete report."""
    parts = [
        "# score",
        QUESTION,
        f"{machine}\n- {rounds} interleaved rounds of {seconds} s, each with servers just started and a new copy of "
        "the database; medians",
        "![Scores](score.svg)",
        scores(standings),
        *disqualifications(standings),
        "## Requests and latencies by kind\n\nOf the round with the median score. p50 / p99 in milliseconds.",
        kinds(standings),
        "## Faults",
        faults(standings),
        "## Configurations",
        "\n".join(f"- **{one.contestant.title}**: {one.about}" for one in standings),
        "## Every round",
        every_round(standings),
    ]
    return "\n\n".join(parts) + "\n"


def scores(standings: Sequence[Standing]) -> str:
    header = [
        "contestant", "score", f"× {standings[0].contestant.title}", "right answers/s", "faults",
        "memo on `/` after, p99 ms", "servers' core", "visitors' core",
    ]  # fmt: skip
    body = []
    for one in standings:
        verdict = one.median.verdict
        body.append([
            one.contestant.title + (" — **disqualified**" if one.disqualified else ""),
            f"{one.score:,}",
            ratio(one, standings[0]).removeprefix("× "),
            f"{(verdict['requests'] - verdict['faults']) / verdict['seconds']:,.0f}",
            f"{verdict['faults']:,}",
            f"{verdict['appeared']['p99_ms']:,.0f}",
            f"{one.median.server_share:.0%}",
            f"{one.median.load_share:.0%}",
        ])  # fmt: skip
    return report.grid(header, body)


def disqualifications(standings: Sequence[Standing]) -> list[str]:
    """Returns a paragraph for each disqualified contestant."""
    return [f"**{one.contestant.title}** is disqualified: {one.disqualified}." for one in standings if one.disqualified]


def kinds(standings: Sequence[Standing]) -> str:
    header = ["kind", "points", *(one.contestant.title for one in standings)]
    first = standings[0].median.verdict["kinds"]
    body = [
        [kind["name"], str(kind["worth"]), *(_of_kind(one.median.verdict["kinds"][place]) for one in standings)]
        for place, kind in enumerate(first)
    ]
    return report.grid(header, body)


def _of_kind(kind: dict[str, Any]) -> str:
    if not kind["count"]:
        return ""
    return f"{kind['count']:,} ({kind['p50_ms']:.2f} / {kind['p99_ms']:.1f})"


def faults(standings: Sequence[Standing]) -> str:
    """Returns the faults of all rounds, the most frequent first."""
    lines = []
    for one in standings:
        reasons: dict[str, int] = {}
        for round in one.rounds:
            for what, count in round.verdict["reasons"].items():
                reasons[what] = reasons.get(what, 0) + count
        for what, count in sorted(reasons.items(), key=lambda item: -item[1])[:10]:
            lines.append(f"- {one.contestant.title}: {what}: {count:,}")
    return "\n".join(lines) or "None."


def every_round(standings: Sequence[Standing]) -> str:
    count = max(len(one.rounds) for one in standings)
    header = ["contestant: score (right answers)", *(str(number + 1) for number in range(count))]
    body = [
        [
            one.contestant.title,
            *(f"{r.score:,} ({r.verdict['requests'] - r.verdict['faults']:,})" for r in one.rounds),
        ]
        for one in standings
    ]
    return report.grid(header, body)
