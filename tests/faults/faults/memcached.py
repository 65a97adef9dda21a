"""A memcached client, for one command at a time."""
from .wire import Socket, WrongFraming


class Memcached(Socket):
    """A connection to the store."""

    def set(self, key, value):
        """Stores an item, and returns what the server says."""
        self.send(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        return self.line()

    def delete(self, key):
        """Deletes an item, and returns what the server says."""
        self.send(b"delete %s\r\n" % key)
        return self.line()

    def get(self, key):
        """Returns the value of an item, or None."""
        self.send(b"get %s\r\n" % key)
        line = self.line()
        if line == b"END":
            return None
        words = line.split(b" ")
        if len(words) != 4 or words[:2] != [b"VALUE", key]:
            raise WrongFraming(f"memcached: {line[:200]!r} for {key!r}")
        value, end = self.take(int(words[3])), self.take(7)
        if end != b"\r\nEND\r\n":
            raise WrongFraming(f"memcached: {end!r} behind a value")
        return value
