"""A client with cookies and a connection that stays open, as a browser has them."""
import http.client
import http.cookies

from answer import Answer
from waiting import WAIT_SECONDS

# All servers are asked for the same site, so that absolute links are the same.
SITE = "site.example"


class Browser:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
        self.cookies = {}
        self.last = None
        self.connections = 0

    def request(self, method, target, content=None, fields=()):
        """Sends a request and returns the response. It follows no redirects."""
        if self.connection.sock is None:
            self.connections += 1
        head = {"Host": SITE, "Accept-Encoding": "identity", "User-Agent": "browser/1"}
        if self.cookies:
            head["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if content is not None:
            head["Content-Type"] = content.media_type
        head.update(fields)
        body = None if content is None else content.body
        self.connection.request(method, target, body=body, headers=head)
        response = self.connection.getresponse()
        self.last = Answer(response.status, response.getheaders(), response.read())
        for line in self.last.all("set-cookie"):
            self._take_cookie(line)
        return self.last

    def _take_cookie(self, line):
        for name, morsel in http.cookies.SimpleCookie(line).items():
            if morsel["max-age"] == "0" or "1970" in morsel["expires"]:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.coded_value

    def close(self):
        self.connection.close()
