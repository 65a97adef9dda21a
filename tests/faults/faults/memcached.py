"""A memcached client that knows whether a command was carried out, was not, or may have been."""
from .wire import PATIENCE, Broken, WrongFraming, connected


class Memcached:
    """A connection to the store."""

    def __init__(self, path):
        self.buffer = b""
        try:
            self.socket = connected(path)
        except OSError as error:
            raise Broken(str(error)) from error

    def close(self):
        """Ends the connection."""
        self.socket.close()

    def _line(self):
        while b"\r\n" not in self.buffer:
            self._more()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def _more(self):
        try:
            data = self.socket.recv(256 * 1024)
        except TimeoutError as error:
            raise WrongFraming(f"memcached: no answer in {PATIENCE} s") from error
        except OSError as error:
            raise Broken(str(error)) from error
        if not data:
            raise Broken("the end")
        self.buffer += data

    def _send(self, data):
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Broken(str(error)) from error

    def set(self, key, value):
        """Stores an item, and returns what the server says."""
        self._send(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        return self._line()

    def delete(self, key):
        """Deletes an item, and returns what the server says."""
        self._send(b"delete %s\r\n" % key)
        return self._line()

    def get(self, key):
        """Returns the value of an item, or None."""
        self._send(b"get %s\r\n" % key)
        line = self._line()
        if line == b"END":
            return None
        words = line.split(b" ")
        if len(words) != 4 or words[:2] != [b"VALUE", key]:
            raise WrongFraming(f"memcached: {line[:200]!r} for {key!r}")
        length = int(words[3])
        while len(self.buffer) < length + 7:
            self._more()
        value, end, self.buffer = (
            self.buffer[:length],
            self.buffer[length : length + 7],
            self.buffer[length + 7 :],
        )
        if end != b"\r\nEND\r\n":
            raise WrongFraming(f"memcached: {end!r} behind a value")
        return value
