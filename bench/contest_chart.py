"""The contest's picture: a bar for each contestant, as an SVG that is readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL, NUMBERS, ROW, BAR, TOP = 760, 230, 190, 44, 22, 46


@dataclass(frozen=True)
class Bar:
    """A contestant as the picture shows it."""

    title: str
    score: int
    remark: str
    """Beside the score: how many times the first one's, or why there is none."""


def svg(bars: Sequence[Bar], title: str) -> str:
    """Bars from zero, on one scale."""
    longest = max((bar.score for bar in bars), default=0) or 1
    room = WIDTH - LABEL - NUMBERS
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + ROW * len(bars)}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="14">',
        # The page decides between light and dark; a picture that is looked at alone asks the
        # system.
        "<style>text { fill: #1f2328 } .bar { fill: #8c959f } .own { fill: #1a7f37 } .faint { fill: #656d76 } "
        "@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #6e7681 } "
        ".own { fill: #3fb950 } .faint { fill: #9198a1 } }</style>",
        f'<text x="0" y="20" font-weight="600">{escape(title)}</text>',
    ]
    for number, bar in enumerate(bars):
        y = TOP + ROW * number
        # A bar that is shorter than a pixel is still one.
        length = max(1.0, room * bar.score / longest) if bar.score else 0.0
        kind = "bar own" if bar.title.startswith("Kirin") else "bar"
        middle = y + BAR * 0.72
        lines += [
            f'<text x="0" y="{middle:.0f}">{escape(bar.title)}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3"/>',
            f'<text x="{LABEL + length + 8:.0f}" y="{middle:.0f}">{bar.score:,} '
            f'<tspan class="faint">{escape(bar.remark)}</tspan></text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
