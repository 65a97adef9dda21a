"""Waits for conditions, and never for fixed times."""
import os
import time

# Slow machines multiply the time that tests wait for something that must happen.
WAIT_SECONDS = 30 * float(os.environ.get("KIRIN_TEST_WAIT_FACTOR") or 1)


def wait_until(condition, what="the condition"):
    """Waits until a function returns something true, and returns that."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited too long: {what}")
        time.sleep(0.01)
