"""Accounts."""
import re
import time

from memo import password as passwords

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{1,19}")
PASSWORD_SHORTEST = 8
PASSWORD_LONGEST = 200
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class NotAccepted(Exception):
    """A sign-up that breaks a rule. The text is for the visitor."""


class Users:
    """The accounts of a database."""

    def __init__(self, database):
        self._database = database

    def sign_up(self, name, password):
        """Creates an account. Returns the user, or raises `NotAccepted`."""
        if not NAME.fullmatch(name):
            raise NotAccepted(
                "A name is 2 to 20 letters, digits, “-” or “_”, and starts with a letter or digit."
            )
        if not PASSWORD_SHORTEST <= len(password) <= PASSWORD_LONGEST:
            raise NotAccepted(
                f"A password is {PASSWORD_SHORTEST} to {PASSWORD_LONGEST} characters long."
            )
        if CONTROL.search(password):
            raise NotAccepted("A password has no control characters.")
        added = self._database.execute(
            "INSERT INTO user (name, password_hash, created_at) VALUES (?, ?, ?)"
            " ON CONFLICT (name) DO NOTHING",
            (name, passwords.hashed(password), int(time.time())),
        )
        if added.rowcount == 0:
            raise NotAccepted(f"The name “{name}” is taken.")
        return {"id": added.lastrowid, "name": name}

    def sign_in(self, name, password):
        """Returns the user with this name and password, or None."""
        user = self._database.execute(
            "SELECT id, name, password_hash FROM user WHERE name = ?", (name,)
        ).fetchone()
        if len(password) > PASSWORD_LONGEST or "\0" in password:
            return None
        if user is None:
            passwords.matches_nobody(password)
            return None
        if not passwords.matches(password, user["password_hash"]):
            return None
        return {"id": user["id"], "name": user["name"]}
