"""The SQLite file, with one connection a process."""
import contextlib
import os
import re
import secrets
import sqlite3

BUSY_TIMEOUT_SECS = 5


class Database:
    """A database at `path`, which need not exist yet.

        with database.exclusively():
            database.execute("INSERT …", values)
    """

    def __init__(self, path, schema_file):
        self.path = os.path.abspath(path)
        self._schema_file = schema_file
        self._connection = None

    def execute(self, sql, values=()):
        """Returns the cursor of a statement. Its rows have columns by name."""
        if self._connection is None:
            self._connection = self._open()
        return self._connection.execute(sql, values)

    def value(self, sql, values=()):
        """Returns the first column of the first row, or None."""
        row = self.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def close(self):
        """Closes the connection. The next statement opens another.

        A parent that is about to fork calls this. SQLite keeps one list of the locks that this
        process has on a file, beside its connections. A child would inherit the list without the
        locks, and its own connection would then work unlocked:
        https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self):
        connection = sqlite3.connect(self.path, BUSY_TIMEOUT_SECS, isolation_level=None)
        connection.row_factory = sqlite3.Row
        # Readers do not wait for the writer, nor the writer for them. With WAL, NORMAL loses at
        # most the last commits when the machine (not the process) dies, and never corrupts:
        # https://www.sqlite.org/pragma.html#pragma_synchronous
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def install_schema(self):
        """Creates the tables in an empty file. Returns whether it did."""
        with self.exclusively():
            if self.value("SELECT 1 FROM sqlite_master WHERE name = 'memo'"):
                return False
            with open(self._schema_file, encoding="utf-8") as file:
                sql = re.sub(r"--[^\n]*", "", file.read())
            for statement in sql.split(";"):
                self.execute(statement)
            for name in ("site_id", "csrf_key"):
                self.execute(
                    "INSERT INTO setting (name, value) VALUES (?, ?)", (name, secrets.token_hex(18))
                )
            return True

    def setting(self, name):
        """Returns a setting that `install_schema` has written."""
        value = self.value("SELECT value FROM setting WHERE name = ?", (name,))
        if value is None:
            raise LookupError(f"no setting {name} in {self.path}")
        return value

    def exclusively(self):
        """Opens a block in which no other process commits. All its reads see the newest state."""
        return self._transaction("BEGIN IMMEDIATE")

    def snapshot(self):
        """Opens a block whose reads all come from one state of the database."""
        return self._transaction("BEGIN DEFERRED")

    @contextlib.contextmanager
    def _transaction(self, begin):
        self.execute(begin)
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            # SQLite has ended the transaction itself after some errors.
            if self._connection.in_transaction:
                self.execute("ROLLBACK")
            raise
