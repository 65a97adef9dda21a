"""What the tests of this directory share: the modules of the example, a store and a site."""
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent
REPOSITORY = EXAMPLE.parent.parent

sys.path[:0] = [str(EXAMPLE), str(REPOSITORY / "adapters/python/tests/store")]

# It makes the package kirin importable, too.
from programs import Memcached  # noqa: E402

from memo.site import Site  # noqa: E402


def arguments(database, store=None):
    """Returns the arguments of `Site` for a database and a store."""
    return {
        "database": database, "schema": EXAMPLE / "schema.sql", "templates": EXAMPLE / "templates",
        "store": store,
    }


class SiteWithStore:
    """A site with a database in a temporary directory, and a store. `item` reads from it."""

    def __enter__(self):
        self._directory = tempfile.mkdtemp(prefix="memo-python-")
        self._store = Memcached()
        self._store.begin()
        self._database = os.path.join(self._directory, "memo.sqlite")
        self.site = self.another()
        return self

    def __exit__(self, *_):
        self.site.database.close()
        self._store.stop()
        shutil.rmtree(self._store.directory)
        shutil.rmtree(self._directory)

    def another(self):
        """Returns a site as another process with the same database and store has it."""
        # The warning about an empty database is for people who start the site.
        logging.getLogger("memo.site").setLevel(logging.ERROR)
        return Site(**arguments(self._database, self._store.address))

    def item(self, key):
        """Returns an item of the store, or None."""
        return self.site.store.client.get(key)
