"""Describes why an application cannot be loaded, for people."""
import os
import sys
import sysconfig
import traceback

from kirin import trace
from kirin.target import TargetError

# The most frames of the application's own files, characters of a line, and exceptions in a chain
# that are shown.
FRAMES = 4
LINE_CHARACTERS = 200
CHAIN = 3

# The most bytes of a text. A line of the control channel has at most 16 KiB, and a backslash or a
# line end takes two bytes there.
TEXT_BYTES = 7 * 1024


def text(error):
    """Returns the reason why an application cannot be loaded, in at most 7 KiB of UTF-8."""
    try:
        lines = _lines(error)
    except BaseException:
        # The exception, or a class in it, may be unable to describe itself.
        lines = [type(error).__name__]
    data = "\n".join(_shown(line) for line in lines).encode("utf-8", "backslashreplace")
    return data[:TEXT_BYTES].decode("utf-8", "ignore")


def _lines(error):
    if isinstance(error, TargetError):
        return [str(error)]
    lines = _described(error)
    lines += _places(error)
    cause, number = _cause(error), 1
    while cause is not None and number < CHAIN:
        first, *others = _described(cause)
        lines += [f"caused by {first}", *others]
        lines += _places(cause)
        cause, number = _cause(cause), number + 1
    if isinstance(error, ImportError):
        lines.append(_interpreter())
    return lines


def _described(error):
    described = "".join(traceback.format_exception_only(type(error), error)).rstrip("\n")
    return described.split("\n")


def _cause(error):
    if error.__cause__ is not None:
        return error.__cause__
    return None if error.__suppress_context__ else error.__context__


def _places(error):
    """Returns the last places in the application's own files, the innermost one last."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not trace.is_own(frame.filename) and not frame.filename.startswith("<frozen ")
    ]
    own = [frame for frame in frames if not _is_installed(frame.filename)] or frames
    lines = []
    for frame in own[-FRAMES:]:
        lines.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
        if frame.line:
            lines.append(f"    {frame.line}")
    return lines


def _is_installed(file):
    """Returns whether a file came with Python or with a package, and not with the application."""
    if f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file:
        return True
    paths = sysconfig.get_paths()
    return any(file.startswith(paths[name] + os.sep) for name in ("stdlib", "platstdlib"))


def _interpreter():
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.prefix != sys.base_prefix:
        environment = f"in the virtual environment {sys.prefix}"
    else:
        environment = "without a virtual environment"
        active = os.environ.get("VIRTUAL_ENV")
        if active:
            environment += f" (VIRTUAL_ENV is {active})"
    return f"The interpreter is {sys.executable}, Python {version}, {environment}."


def _shown(line):
    """Returns a line that cannot control a terminal, and is not too long."""
    line = "".join(c if c.isprintable() else "?" for c in line[: LINE_CHARACTERS + 1])
    return line if len(line) <= LINE_CHARACTERS else line[:LINE_CHARACTERS] + "…"
