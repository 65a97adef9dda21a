"""After how many requests a worker leaves (`max_requests`)."""
import random

# Workers that started together must not all leave together. So up to this part of the number of
# requests is subtracted at random.
JITTER = 0.1


def drawn(most):
    """Returns the number of requests that one worker serves: -1 if there is no limit."""
    return most - random.randrange(1 + int(most * JITTER)) if most else -1
