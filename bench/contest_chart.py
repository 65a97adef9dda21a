"""Draws the contest as SVG: a bar for each contestant, readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL, NUMBERS, ROW, BAR, TOP = 760, 230, 190, 44, 22, 46


@dataclass(frozen=True)
class Bar:
    """A contestant in the picture."""

    title: str
    score: int
    remark: str
    """The text beside the score: its ratio to the first contestant's score, or the reason why there
    is none.
    """


def svg(bars: Sequence[Bar], title: str) -> str:
    """Returns a picture of the bars. They begin at zero and have one scale."""
    longest = max((bar.score for bar in bars), default=0) or 1
    room = WIDTH - LABEL - NUMBERS
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + ROW * len(bars)}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="14">',
        # The page decides between light and dark. A picture without a page asks the system.
        "<style>text { fill: #1f2328 } .bar { fill: #8c959f } .own { fill: #1a7f37 } .faint { fill: #656d76 } "
        "@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .bar { fill: #6e7681 } "
        ".own { fill: #3fb950 } .faint { fill: #9198a1 } }</style>",
        f'<text x="0" y="20" font-weight="600">{escape(title)}</text>',
    ]
    for number, bar in enumerate(bars):
        y = TOP + ROW * number
        # A bar that is shorter than a pixel is drawn as one pixel.
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
