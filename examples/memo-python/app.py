"""The memo site.

    kirin serve --config examples/memo-python/kirin.toml

In the environment:

    MEMO_DATABASE  the SQLite file (default: data/memo.sqlite beside this file)
    KIRIN_STORE    the address of the store, unix:PATH or HOST:PORT
                   (default: none, pages are not stored)
"""
import os
from pathlib import Path

from memo.site import Site

HERE = Path(__file__).resolve().parent

application = Site(
    database=os.environ.get("MEMO_DATABASE") or HERE / "data/memo.sqlite",
    schema=HERE / "schema.sql",
    templates=HERE / "templates",
    store=os.environ.get("KIRIN_STORE"),
)
