"""Texts about exceptions of an application, and about requests that take too long."""
import os
import traceback

from kirin import log

# The most characters of a text in the log.
TEXT_CHARACTERS = 64 * 1024

_OWN_DIRECTORY = os.path.dirname(os.path.abspath(__file__)) + os.sep


def text(error):
    """Returns the type and message of an exception, and its stack without the worker's frames."""
    try:
        frames = error.__traceback__
        while frames is not None and is_own(frames.tb_frame.f_code.co_filename):
            frames = frames.tb_next
        brief = "".join(traceback.format_exception_only(type(error), error)).strip("\n")
        if frames is None and error.__cause__ is None and error.__context__ is None:
            return brief
        lines = traceback.format_exception(type(error), error, frames)
        full = brief.split("\n")[0] + "\n" + "".join(lines)
    except BaseException:
        # The exception, or a class in it, may be unable to describe itself.
        full = type(error).__name__
    if len(full) > TEXT_CHARACTERS:
        half = TEXT_CHARACTERS // 2
        full = f"{full[:half]}\n  …\n{full[-half:]}"
    return full


def is_own(file):
    """Returns whether a source file belongs to this package."""
    return file.startswith(_OWN_DIRECTORY)


def log_failure(environ, error):
    """Logs why a request has failed."""
    log.line(f"kirin: worker {log.pid()}: {request_line(environ)}: {text(error)}")


def log_overdue(environ, frame):
    """Logs the request that takes too long, and the place that `frame` executes.

    faulthandler has written the stacks of all threads before.
    """
    place = "nowhere"
    if frame is not None:
        code = frame.f_code
        place = f"{code.co_filename} line {frame.f_lineno}, in {code.co_name}"
    log.line(
        f"kirin: worker {log.pid()}: {request_line(environ)}: took too long, at {place};"
        " the stacks of all threads are above"
    )


def request_line(environ):
    """Returns the method and the target of a request."""
    return f"{environ.get('REQUEST_METHOD', '')} {environ.get('REQUEST_URI', '')}"
