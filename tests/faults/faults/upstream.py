"""The server behind `proxy:`, in threads of the harness. It notes each request that it gets."""
import socket
import threading

from .content import named


class Upstream:
    """A server that echoes and answers by name, on a unix socket."""

    def __init__(self, path):
        self.received = []
        self.lock = threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(100)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Accepts nobody any more."""
        self.socket.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("rb") as reader:
            try:
                while self._answer(client, reader):
                    pass
            except (OSError, ValueError):
                pass

    def _answer(self, client, reader):
        line = reader.readline()
        if not line:
            return False
        method, target, _ = line.decode().split(" ")
        fields = {}
        while (field := reader.readline()) not in (b"\r\n", b""):
            name, _, value = field.decode().partition(":")
            fields[name.lower()] = value.strip()
        body = self._body(reader, fields)
        if body is None:
            return False
        self._note(method, target)
        if "upgrade" in fields:
            upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            client.sendall(upgraded.encode())
            while data := reader.read1(5000):
                client.sendall(data)
            return False
        if method == "POST":
            content = body
        else:
            content = named(target)
        caching = "Cache-Control: max-age=600\r\n" if target.startswith("/cached/") else ""
        head = f"HTTP/1.1 200 OK\r\n{caching}"
        if "chunked" in target:
            client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            for start in range(0, len(content), 5000):
                part = content[start : start + 5000]
                client.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            client.sendall(b"0\r\n\r\n")
        else:
            client.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        return True

    def _note(self, method, target):
        with self.lock:
            self.received.append(f"{method} {target}")

    @staticmethod
    def _body(reader, fields):
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                length = int(reader.readline(), 16)
                data = reader.read(length)
                if len(data) < length or reader.readline() != b"\r\n":
                    return None
                if length == 0:
                    return body
                body += data
        length = int(fields.get("content-length", "0"))
        body = reader.read(length)
        return body if len(body) == length else None
