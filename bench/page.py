"""The bodies that are served: the same bytes from every server of a comparison."""

from __future__ import annotations

import random


def html(size: int) -> bytes:
    """An HTML page of exactly this many bytes, without characters that a configuration would have to escape."""
    head, foot = b"<!DOCTYPE html><html><head><title>page</title></head><body><p>", b"</p></body></html>\n"
    words = b"lorem ipsum dolor sit amet "
    room = size - len(head) - len(foot)
    return head + (words * (room // len(words) + 1))[:room] + foot


def article(size: int) -> bytes:
    """A page of this many bytes that compresses as pages do: random words of a vocabulary, in paragraphs with links."""
    dice = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(dice.choices(letters, weights=range(26, 0, -1), k=dice.randint(2, 9))) for _ in range(400)]
    often = [1 / (rank + 1) for rank in range(400)]
    lines = ["<!DOCTYPE html><html><head><title>page</title></head><body>"]
    while sum(map(len, lines)) < size:
        text = " ".join(dice.choices(words, weights=often, k=30))
        lines.append(f'<p class="entry"><a href="/entry/{dice.randint(1, 99999)}">{text}</a></p>\n')
    return "".join(lines).encode()[:size]


FRAGMENTS = {f"/fragment/{number}": b"<div>" + b"%d" % number * 190 + b"</div>" for number in (1, 2, 3)}
"""Three parts of a page, 201 bytes each."""


def with_includes(directive: str) -> bytes:
    """A page of 1 KB when filled in. `directive` is the include, with {} for the fragment's path."""
    includes = "\n".join(directive.format(path) for path in FRAGMENTS)
    return html(420).replace(b"<p>", f"<p>{includes}\n".encode(), 1)


def filled() -> bytes:
    """The page of `with_includes` as it must arrive."""
    included = b"\n".join(FRAGMENTS.values())
    return html(420).replace(b"<p>", b"<p>" + included + b"\n", 1)
