"""The memos: writes one, finds one, lists them."""
import time

from memo import markdown

PER_PAGE = 100
NEWEST_COUNT = 8

LISTED = """SELECT memo.id, memo.title, memo.excerpt, memo.created_at, memo.public_number,
                   user.name AS author
              FROM memo JOIN user ON user.id = memo.user_id"""


class Memos:
    """The memos of a database."""

    def __init__(self, database):
        self._database = database

    def create(self, user_id, content, is_private, before_commit=None):
        """Creates a memo. Returns its id.

        `before_commit` is called when no other process can write.
        """
        title, excerpt = markdown.title_and_excerpt(content)
        with self._database.exclusively():
            if before_commit:
                before_commit()
            # The lock is why public numbers have no gap.
            public_number = None if is_private else self.public_total() + 1
            return self._database.execute(
                "INSERT INTO memo (user_id, title, excerpt, content, public_number, created_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (user_id, title, excerpt, content, public_number, int(time.time())),
            ).lastrowid

    def find(self, memo_id):
        """Returns a memo, or None."""
        return self._database.execute(
            """SELECT memo.id, memo.user_id, memo.title, memo.content, memo.created_at,
                      memo.public_number, user.name AS author
                 FROM memo JOIN user ON user.id = memo.user_id WHERE memo.id = ?""",
            (memo_id,),
        ).fetchone()

    def public_total(self):
        """Returns the number of public memos.

        It is also the version of every public page, because nothing else changes them.
        """
        return self._database.value("SELECT MAX(public_number) FROM memo") or 0

    def public_page(self, page):
        """Returns the public memos of a page, newest first. Page 0 is the newest."""
        newest = self.public_total() - page * PER_PAGE
        return self._rows(
            f"{LISTED} WHERE memo.public_number BETWEEN ? AND ? ORDER BY memo.public_number DESC",
            newest - PER_PAGE + 1, newest,
        )

    def last_page(self):
        """Returns the number of the last page that has a memo."""
        return max(0, (self.public_total() - 1) // PER_PAGE)

    def newest(self):
        """Returns the newest public memos."""
        return self._rows(
            f"{LISTED} WHERE memo.public_number > ? ORDER BY memo.public_number DESC",
            self.public_total() - NEWEST_COUNT,
        )

    def of_user(self, user_id):
        """Returns all memos of an author, newest first."""
        return self._rows(f"{LISTED} WHERE memo.user_id = ? ORDER BY memo.id DESC", user_id)

    def public_neighbours(self, memo):
        """Returns the ids of the same author's public memos before and after this one."""
        return self._neighbours("public_number", memo["user_id"], memo["public_number"])

    def all_neighbours(self, memo):
        """Returns the ids of all the author's memos before and after this one.

        Only the author may see them.
        """
        return self._neighbours("id", memo["user_id"], memo["id"])

    def _neighbours(self, column, user_id, number):
        of_author = "SELECT id FROM memo WHERE user_id = ?"
        values = user_id, number
        return {
            "older": self._database.value(
                f"{of_author} AND {column} < ? ORDER BY {column} DESC LIMIT 1", values
            ),
            "newer": self._database.value(
                f"{of_author} AND {column} > ? ORDER BY {column} LIMIT 1", values
            ),
        }

    def ids_touched_since(self, number):
        """Returns the ids of memos whose page has changed since there were `number` public memos.

        These are the new ones, and for each new one its author's previous memo, which now has a
        newer neighbour.
        """
        ids = set()
        for memo in self._rows(
            "SELECT id, user_id, public_number FROM memo WHERE public_number > ?", number
        ):
            ids.add(memo["id"])
            ids.add(self.public_neighbours(memo)["older"])
        return ids - {None}

    def ids_of_author(self, user_id):
        """Returns the ids of an author's public and private memos, as two ascending lists."""
        rows = self._rows(
            "SELECT id, public_number FROM memo WHERE user_id = ? ORDER BY id", user_id
        )
        public = [row["id"] for row in rows if row["public_number"] is not None]
        private = [row["id"] for row in rows if row["public_number"] is None]
        return public, private

    def public_ids(self):
        """Returns the ids of all public memos."""
        return self._ids("SELECT id FROM memo WHERE public_number IS NOT NULL")

    def private_ids(self):
        """Returns the ids of all private memos."""
        return self._ids("SELECT id FROM memo WHERE public_number IS NULL")

    def author_ids(self):
        """Returns the ids of all users with a memo."""
        return self._ids("SELECT DISTINCT user_id FROM memo")

    def _rows(self, sql, *values):
        return self._database.execute(sql, values).fetchall()

    def _ids(self, sql):
        return [row[0] for row in self._database.execute(sql)]
