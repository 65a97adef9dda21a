"""Texts about exceptions of an application, and about requests that take too long."""
import os
import traceback

from kirin import log

# The most characters of a text in the log.
TEXT_CHARACTERS = 64 * 1024

# The attributes of coroutines, generators and asynchronous generators with their frame, and with
# what they wait for.
_SUSPENDED = (
    ("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await")
)

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
    log.line(
        f"kirin: worker {log.pid()}: {request_line(environ)}: took too long, at {_place(frame)};"
        " the stacks of all threads are above"
    )


def _place(frame):
    """Returns where a frame executes."""
    if frame is None:
        return "nowhere"
    code = frame.f_code
    return f"{code.co_filename} line {frame.f_lineno}, in {code.co_name}"


def log_overdue_task(environ, task):
    """Logs the request that takes too long, and where its coroutine waits."""
    log.line(
        f"kirin: worker {log.pid()}: {request_line(environ)}: took too long, and is cancelled;"
        f" it waits here:\n{_awaits(task)}"
    )


def _awaits(task):
    """Returns the places in which a suspended task waits, the innermost last."""
    stack, waits = traceback.StackSummary(), task.get_coro()
    while waits is not None:
        for frame_name, next_name in _SUSPENDED:
            frame = getattr(waits, frame_name, None)
            if frame is not None:
                break
        else:
            break
        if not is_own(frame.f_code.co_filename):
            stack.extend(traceback.extract_stack(frame, limit=1))
        waits = getattr(waits, next_name)
    return "".join(stack.format()) or "  nowhere"


def log_hanging_loop(frame, requests):
    """Logs the place that keeps an event loop from its work, and the requests in progress.

    faulthandler has written the stacks of all threads before.
    """
    log.line(
        f"kirin: worker {log.pid()}: the event loop hangs, at {_place(frame)}; the stacks of all"
        f" threads are above; requests in progress: {requests}"
    )


def request_line(environ):
    """Returns the method and the target of a request."""
    return f"{environ.get('REQUEST_METHOD', '')} {environ.get('REQUEST_URI', '')}"
