"""The bodies of responses. Every server of a comparison sends the same bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass


def html(size: int) -> bytes:
    """Returns an HTML page of exactly this size. No configuration needs to escape a character of
    it.
    """
    head, foot = b"<!DOCTYPE html><html><head><title>page</title></head><body><p>", b"</p></body></html>\n"
    words = b"lorem ipsum dolor sit amet "
    room = size - len(head) - len(foot)
    return head + (words * (room // len(words) + 1))[:room] + foot


def article(size: int) -> bytes:
    """Returns a page of this size that compresses as real pages do. It has random words of a
    vocabulary, in paragraphs with links.
    """
    dice = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(dice.choices(letters, weights=range(26, 0, -1), k=dice.randint(2, 9))) for _ in range(400)]
    often = [1 / (rank + 1) for rank in range(400)]
    lines = ["<!DOCTYPE html><html><head><title>page</title></head><body>"]
    while sum(map(len, lines)) < size:
        text = " ".join(dice.choices(words, weights=often, k=30))
        lines.append(f'<p class="entry"><a href="/entry/{dice.randint(1, 99999)}">{text}</a></p>\n')
    return "".join(lines).encode()[:size]


def fragments(count: int) -> dict[str, bytes]:
    """Returns parts of a page by their paths. Each has 201 bytes."""
    texts = {number: (b"%d" % number * 190)[:190] for number in range(1, count + 1)}
    return {f"/fragment/{number}": b"<div>" + text + b"</div>" for number, text in texts.items()}


def with_includes(directive: str, paths: Iterable[str]) -> bytes:
    """Returns a page of 420 bytes and its includes. `directive` is the include, with {} for the
    path of the part.
    """
    includes = "\n".join(directive.format(path) for path in paths)
    return html(420).replace(b"<p>", f"<p>{includes}\n".encode(), 1)


def filled(parts: Iterable[bytes]) -> bytes:
    """Returns the page of `with_includes` as it must arrive."""
    return html(420).replace(b"<p>", b"<p>" + b"\n".join(parts) + b"\n", 1)


@dataclass(frozen=True)
class Assembled:
    """A page and its parts as a store holds them, and the page as it must arrive."""

    path: str
    items: Callable[[str], dict[str, bytes]]
    """The function that returns the items by key, for a way to write includes."""

    body: bytes


def flat(count: int) -> Assembled:
    """Returns a page that includes this number of parts."""
    parts, path = fragments(count), f"/page-{count}"
    return Assembled(
        path, lambda directive: {path: with_includes(directive, parts), **parts}, filled(parts.values())
    )


def nested() -> Assembled:
    """Returns a page that includes three parts, each of which includes three."""
    parts = fragments(3)
    sections = [f"/section/{number}" for number in (1, 2, 3)]

    def items(directive: str) -> dict[str, bytes]:
        section = "".join(["<section>", *(directive.format(path) for path in parts), "</section>"]).encode()
        return {"/nested": with_includes(directive, sections), **dict.fromkeys(sections, section), **parts}

    section = b"<section>" + b"".join(parts.values()) + b"</section>"
    return Assembled("/nested", items, filled([section] * 3))
