"""Why a command to the store has failed. No method of `Store` raises these."""


class StoreError(Exception):
    """The store is away, or it has refused a command. The text is one line."""


class NoAnswer(StoreError):
    """The store has not answered within the time limit. It may have carried out the command."""


class InvalidArgument(StoreError):
    """A key, a value or an option that cannot be sent. Nothing was sent."""


def without_frames(failure):
    """Returns a failure that can be kept.

    A traceback would keep the values of the application alive until the next command.
    """
    error = failure
    while error is not None:
        error.__traceback__ = None
        error.__context__ = None
        error = error.__cause__
    return failure
