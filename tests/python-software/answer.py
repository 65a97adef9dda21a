"""A response as the client has read it."""
import gzip
import re


class Answer:
    def __init__(self, status, fields, body):
        self.status = status
        self.fields = fields
        self.body = body

    def field(self, name):
        """Returns the value of a field, or None."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    def all(self, name):
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def content(self):
        """Returns the body without its coding. Compressed bytes can have the time in them."""
        is_coded = self.field("content-encoding") == "gzip" and self.body
        return gzip.decompress(self.body) if is_coded else self.body

    def find(self, pattern):
        """Returns the first group of a pattern in the body. Forms have such tokens."""
        found = re.search(pattern.encode(), self.body)
        if not found:
            raise AssertionError(f"{pattern} is not in\n{self}")
        return found.group(1).decode()

    def __str__(self):
        head = "".join(f"{name}: {value}\n" for name, value in self.fields)
        if b"\0" in self.body:
            return f"{self.status}\n{head}\n{len(self.body)} bytes"
        return f"{self.status}\n{head}\n{self.body[:2000].decode('utf-8', 'replace')}"
