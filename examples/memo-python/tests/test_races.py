"""What the store has when processes race or die.

The other tests of the store are for both languages: ../memo/t with MEMO_APP=python.
"""
import unittest

from example import SiteWithStore


class Killed(Exception):
    """A process that dies in the middle of something."""


def user(site, name):
    """Returns a new user."""
    return site.users.sign_up(name, "a good password")


class TestRaces(unittest.TestCase):
    def setUp(self):
        self.example = SiteWithStore()
        self.site = self.enter(self.example).site

    def enter(self, context):
        self.addCleanup(context.__exit__, None, None, None)
        return context.__enter__()

    def test_a_page_rendered_before_a_memo_is_not_stored_after_it(self):
        author = user(self.site, "bea")["id"]
        self.site.memos.create(author, "One", False)
        version = self.site.memos.public_total()
        old = self.site.pages.render("/")
        self.assertTrue(self.site.pages.store.push("/", old, version))
        self.assertIn(b">One<", self.example.item("/"))

        # Its writer has not come to settle yet.
        self.site.memos.create(author, "Two", False)
        self.assertFalse(self.site.pages.store.push("/", old, version))
        self.assertIsNone(self.example.item("/"))

    def test_a_list_is_gone_before_its_memo_is_there(self):
        mari = user(self.site, "mari")["id"]
        secret = self.site.memos.find(self.site.memos.create(mari, "Secret", True))
        key = f"author/{mari}/private"
        self.site.private_pages.neighbours(secret)
        self.assertEqual(self.example.item(key), str(secret["id"]).encode())

        def dies():
            self.site.private_pages.author_writes(mari)
            raise Killed

        with self.assertRaises(Killed):
            self.site.memos.create(mari, "Lost", True, dies)
        self.assertIsNone(self.example.item(key))
        self.site.private_pages.neighbours(secret)
        self.assertEqual(self.example.item(key), str(secret["id"]).encode())

    def test_a_copy_is_not_written_after_its_session_has_ended(self):
        mari = user(self.site, "mari")
        token = self.site.sessions.start(mari, None)
        self.assertIsNotNone(self.example.item(token))
        session = self.site.sessions.find(token)
        other = self.example.another()
        self.addCleanup(other.database.close)
        other.sessions.end(token)
        self.assertIsNone(self.example.item(token))

        # This process has seen the session before the other one ended it.
        found = []

        def find(asked):
            found.append(self.site.sessions.find(asked))
            return found[-1]

        items = self.site.sessions.items
        items.keep(token, session["expires_at"], find)
        self.assertEqual(found, [None])
        self.assertIsNone(self.example.item(token))


if __name__ == "__main__":
    unittest.main()
