"""Contents of requests, as a browser or a program sends them."""
import urllib.parse

BOUNDARY = "----the-boundary-of-these-tests"


class Form:
    """A form without files: a list of pairs, or a dict."""

    def __init__(self, pairs):
        self.body = urllib.parse.urlencode(pairs).encode()
        self.media_type = "application/x-www-form-urlencoded"


class Multipart:
    """A form with files. A value is a text, or (file name, media type, bytes)."""

    def __init__(self, pairs):
        self.body = b"".join(self._part(name, value) for name, value in pairs)
        self.body += f"--{BOUNDARY}--\r\n".encode()
        self.media_type = f"multipart/form-data; boundary={BOUNDARY}"

    @staticmethod
    def _part(name, value):
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
        if isinstance(value, str):
            return f"{head}\r\n\r\n{value}\r\n".encode()
        file_name, media_type, content = value
        head += f'; filename="{file_name}"\r\nContent-Type: {media_type}\r\n\r\n'
        return head.encode() + content + b"\r\n"


class Json:
    def __init__(self, text):
        self.body = text.encode()
        self.media_type = "application/json"


class Chunked:
    """Another content, sent in chunks and without a length."""

    def __init__(self, content, size=70_000):
        whole = content.body
        self.body = (whole[at:at + size] for at in range(0, len(whole), size))
        self.media_type = content.media_type
