#!/usr/bin/python3
"""Prints rows of memcached's `stats`: those that are named, or all.

    python3 stats.py get_hits curr_items

MEMCACHED is the address of the store.
"""
import os
import sys

from pymemcache.client.base import Client

store = Client(os.environ.get("MEMCACHED") or "127.0.0.1:11211", connect_timeout=1, timeout=1)
rows = {name.decode(): value for name, value in store.stats().items()}
for name in sys.argv[1:] or rows:
    value = rows[name]
    print(name, value.decode() if isinstance(value, bytes) else value)
