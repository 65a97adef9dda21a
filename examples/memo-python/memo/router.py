"""From method and path to code."""
import re

# Each number has one spelling (no leading zeros), because the path is also the page's key in the
# store.
NUMBER = "(0|[1-9][0-9]{0,8})"


class Router:
    """Routes, each as (method, path, handler). `{number}` in a path is a number.

        router = Router([("GET", "/memo/{number}", show), ("POST", "/memo", write)])
        handler, numbers, allowed = router.match("GET", "/memo/17")
    """

    def __init__(self, routes):
        self._routes = [
            (method, re.compile(NUMBER.join(map(re.escape, path.split("{number}")))), handler)
            for method, path, handler in routes
        ]

    def match(self, method, path):
        """Returns the handler and the numbers in the path.

        If there is no handler, it is None. The third value then has the methods of this path.
        """
        method = "GET" if method == "HEAD" else method
        allowed = []
        for known, pattern, handler in self._routes:
            if found := pattern.fullmatch(path):
                if known == method:
                    return handler, map(int, found.groups()), []
                allowed.append(known)
        return None, (), allowed
