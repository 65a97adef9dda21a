"""Writes the report of a comparison in Markdown: the machine, one table for each load, the budgets,
and the configurations.
"""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from comparison import Budget, Comparison, Result, Row, Table
from host import Cores, version_of

FLOOR = "floor"
OWN = "kirin"


def machine(cores: Cores, load_before: float, load: str = "") -> str:
    """Returns the time and the machine of the measurement. `load` names the load generator; empty
    means wrk.
    """
    cpus = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in cpus if line.startswith("model name")]
    model = models[0] if models else platform.machine()
    placed = (
        f"servers and load together on cores {cores.server}"
        if cores.shared
        else f"servers on core {cores.server}, load on core {cores.load}"
    )
    load = load or version_of("wrk", "-v").split(" Copyright")[0]
    return "\n".join(
        [
            f"- {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC; Linux {platform.release()}; "
            f"{model}, {os.cpu_count()} cores; {placed}",
            f"- load: {load}; load average when it began: {load_before:.2f}",
        ]
    )


def markdown(result: Result, rounds: int, seconds: float, machine_text: str) -> str:
    """Returns the complete report."""
    comparison = result.comparison
    parts = [
        f"# {comparison.name}",
        comparison.question,
        machine_text + f"\n- {rounds} interleaved rounds of {seconds:g} s after a warm-up; medians",
    ]
    for table in result.tables:
        parts += [f"## {table.load.title}", summary(table, comparison)]
        parts += [text for budget in comparison.budgets if (text := _budget(budget, table))]
    parts += _ending(comparison.notes, result.about)
    parts += ["## Every round", *(_rounds(table) for table in result.tables)]
    return "\n\n".join(parts) + "\n"


def plain(
    name: str, question: str, machine_text: str, table: str, notes: Sequence[str], about: Mapping[str, str]
) -> str:
    """Returns the report of a comparison that is one table."""
    return "\n\n".join([f"# {name}", question, machine_text, table, *_ending(notes, about)]) + "\n"


def _ending(notes: Sequence[str], about: Mapping[str, str]) -> list[str]:
    parts = ["## How to read it\n\n" + "\n".join(f"- {note}" for note in notes)] if notes else []
    return [
        *parts,
        "## Configurations\n\n" + "\n".join(f"- **{row}**: {text}" for row, text in about.items()),
    ]


def summary(table: Table, comparison: Comparison) -> str:
    """Returns the table of one load, the cheapest server first."""
    unit = comparison.unit
    floor = _cheapest(row for row in table.rows if row.entrant.peer == FLOOR and row.usable)
    peer = _cheapest(row for row in table.rows if row.entrant.peer not in (FLOOR, OWN) and row.usable)
    columns: dict[str, Callable[[Row], str]] = {
        f"{unit}s/s": lambda row: f"{row.per_second:,.0f}",
        f"CPU µs/{unit}": lambda row: f"{row.cpu_us:.2f}",
        "user": lambda row: f"{row.user_us:.2f}",
        "system": lambda row: f"{row.system_us:.2f}",
    }
    if comparison.behind:
        columns[f"{comparison.behind}'s part"] = lambda row: f"{row.behind_us:.2f}"
    if floor is not None:
        columns["× floor"] = _times(floor)
    if peer is not None:
        columns["× best peer"] = _times(peer)
        columns["user × best peer"] = lambda row: f"{row.user_us / peer.user_us:.2f}" if peer.user_us else ""
    columns["load's CPU µs"] = lambda row: f"{row.load_cpu_us:.2f}"
    columns["p99 ms"] = lambda row: f"{row.p99_us / 1000:.2f}"
    columns["answer bytes"] = lambda row: f"{row.answer_bytes:,}"
    columns["own CPU"] = lambda row: f"{row.per_second * row.cpu_us / 1e6:.0%}"
    if not comparison.share_cores:  # The load would be among them.
        columns["others"] = lambda row: f"{row.others:.0%}"
    body = []
    for row in sorted(table.rows, key=lambda row: (not row.usable, row.cpu_us if row.rounds else 0.0)):
        name = row.entrant.row + (f" — **failed**: {row.failures}" if row.failures else "")
        body.append([name, *(render(row) if row.rounds else "" for render in columns.values())])
    return grid(["server", *columns], body)


def grid(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table. The first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _times(base: Row) -> Callable[[Row], str]:
    return lambda row: f"{row.cpu_us / base.cpu_us:.2f}"


def _cheapest(rows: Iterable[Row]) -> Row | None:
    candidates = list(rows)
    return min(candidates, key=lambda row: row.cpu_us) if candidates else None


def _budget(budget: Budget, table: Table) -> str:
    if budget.load not in ("", table.load.title):
        return ""
    row, against = table.row(budget.row), table.row(budget.against)
    if row is None or against is None:
        return ""
    spent, allowed = (row.user_us, against.user_us) if budget.is_user else (row.cpu_us, against.cpu_us)
    ratio = spent / allowed if allowed else 0.0
    verdict = "kept" if ratio <= budget.at_most else "**missed**"
    return f"Budget: {budget.text}: {ratio:.3f} of {budget.at_most:g} × {budget.against} — {verdict}."


def _rounds(table: Table) -> str:
    count = max((len(row.rounds) for row in table.rows), default=0)
    header = [f"{table.load.title}: CPU µs (per second)", *(str(number + 1) for number in range(count))]
    body = [
        [row.entrant.row, *(f"{r.cpu_us:.2f} ({r.per_second:,.0f})" for r in row.rounds)]
        for row in table.rows
        if row.rounds
    ]
    return grid(header, body)
