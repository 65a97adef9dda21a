"""Code of an application that runs at the start and at the end of a worker.

    import kirin

    @kirin.after_fork
    def connect():
        global database
        database = connect_to_database()

    @kirin.before_exit
    def flush():
        statistics.flush()

The application is loaded once, before its workers are forked. Resources that processes must not
share, such as a database connection, belong into `after_fork`. Hooks run in the order in which
they were registered. Under another server they can be registered, but do not run.
"""
from kirin import log, trace

_after_fork = []
_before_exit = []


def after_fork(hook):
    """Registers a function without arguments that each new worker calls before it takes a request.

    If it raises an exception, the worker ends, the log has the reason, and another worker is forked
    after a growing pause. Returns the function, so this can be used as a decorator.
    """
    _after_fork.append(hook)
    return hook


def before_exit(hook):
    """Registers a function without arguments that each worker calls when it leaves normally.

    A worker leaves normally after TERM, after its number of requests, and for a new generation. The
    function does not run if the worker is killed. It has the request deadline; then the front kills
    the worker. Returns the function, so this can be used as a decorator.
    """
    _before_exit.append(hook)
    return hook


def run_after_fork():
    """Runs the hooks, up to the first exception: a worker without a database must not serve."""
    for hook in _after_fork:
        hook()


def run_before_exit():
    """Runs all hooks, also if one of them raises an exception. The log has the reason."""
    for hook in _before_exit:
        try:
            hook()
        except BaseException as error:
            log.line(f"kirin: worker {log.pid()}: before_exit: {trace.text(error)}")
