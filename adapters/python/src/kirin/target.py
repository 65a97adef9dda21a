"""Parses the name of an application: `app.py`, `app.py:NAME` or `package.module:NAME`."""
import os
import re
from typing import NamedTuple, Optional

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_ATTRIBUTE = re.compile(rf"({_DOTTED.pattern})(\(\s*\))?")
_CALL_WITH_ARGUMENTS = re.compile(rf"{_DOTTED.pattern}\s*\(.*\)", re.DOTALL)


class TargetError(Exception):
    """A target that names no application. Its text is for the person who wrote the target."""


class Target(NamedTuple):
    """The application that a worker must load."""

    # The absolute path of a file, or None.
    file: Optional[str]
    # The dotted name of a module, or None for a file.
    module: Optional[str]
    # The dotted name in the module, or None if nothing has been said.
    attribute: Optional[str]
    # Whether the attribute must be called, without arguments, to get the application.
    is_call: bool


def parse(text):
    """Returns the `Target` that a text names. A relative path counts from the working directory."""
    place, attribute, is_call = text, None, False
    head, colon, tail = text.rpartition(":")
    if colon and head and not os.path.isfile(text):
        found = _ATTRIBUTE.fullmatch(tail)
        if found:
            place, attribute, is_call = head, found[1], found[2] is not None
        elif _CALL_WITH_ARGUMENTS.fullmatch(tail):
            raise TargetError(
                f"{text}: only a call without arguments is possible, as in {head}:create_app()"
            )
        elif "/" not in tail:
            raise TargetError(f"{text}: {tail!r} is no name in a module")
    if os.path.isfile(place) or "/" in place or place.endswith(".py"):
        return Target(os.path.abspath(place), None, attribute, is_call)
    if not _DOTTED.fullmatch(place):
        raise TargetError(f"{text}: this is neither a file nor the name of a module")
    return Target(None, place, attribute, is_call)
