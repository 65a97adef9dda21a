#!/usr/bin/python3
"""Prints a prime number. It takes the number from the store, or calculates and stores it.

    python3 prime.py 20000        the 20,000th prime number

prime.pl is the same in Perl, with the same keys. MEMCACHED is the address of the store.
"""
import math
import os
import re
import sys

from pymemcache.client.base import Client

SECONDS_TO_LIVE = 3600


def nth_prime(nth):
    """Returns the nth prime by the sieve of Eratosthenes, up to a bound for it."""
    bound = 13 if nth < 6 else int(nth * (math.log(nth) + math.log(math.log(nth))))
    composite = bytearray(bound + 1)
    for number in range(2, bound + 1):
        if composite[number]:
            continue
        nth -= 1
        if nth == 0:
            return number
        for multiple in range(number * number, bound + 1, number):
            composite[multiple] = 1
    raise AssertionError("the bound is too small")


def main():
    if len(sys.argv) != 2 or not re.fullmatch("[1-9][0-9]{0,4}", sys.argv[1]):
        sys.exit("usage: python3 prime.py NUMBER    from 1 to 99999")
    nth = int(sys.argv[1])
    address = os.environ.get("MEMCACHED") or "127.0.0.1:11211"
    store = Client(address, key_prefix=b"prime/", connect_timeout=1, timeout=1)

    # The counter lives for ever. `add` stores it only if it is not there, so that two scripts which
    # start at the same time lose no count.
    store.add("asked", "0")
    asked = store.incr("asked", 1)

    stored = store.get(str(nth))
    source = "calculated in Python" if stored is None else "from the store"
    prime = nth_prime(nth) if stored is None else int(stored)
    if stored is None:
        store.set(str(nth), str(prime), expire=SECONDS_TO_LIVE)
    print(f"prime {nth} is {prime}, {source}; question {asked}")


if __name__ == "__main__":
    main()
