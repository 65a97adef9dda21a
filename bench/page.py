"""The bodies that are served: the same bytes from every server of a comparison."""

from __future__ import annotations


def html(size: int) -> bytes:
    """An HTML page of exactly this many bytes, without characters that a configuration would have to escape."""
    head, foot = b"<!DOCTYPE html><html><head><title>page</title></head><body><p>", b"</p></body></html>\n"
    words = b"lorem ipsum dolor sit amet "
    room = size - len(head) - len(foot)
    return head + (words * (room // len(words) + 1))[:room] + foot


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
