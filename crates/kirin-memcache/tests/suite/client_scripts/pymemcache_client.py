"""Talks to the server named on the command line with pymemcache; a wrong answer is an exception."""

import sys

from pymemcache.client.base import Client
from pymemcache.exceptions import MemcacheServerError

address = sys.argv[1]
if not address.startswith("/"):
    host, port = address.rsplit(":", 1)
    address = (host, int(port))
client = Client(address, default_noreply=False, no_delay=True)

assert client.flush_all()
assert client.set("a", b"one", expire=100, flags=7)
assert client.get("a") == b"one"
value, cas = client.gets("a")
assert value == b"one"
assert client.cas("a", b"two", cas) is True
assert client.cas("a", b"three", cas) is False
assert client.cas("nothing", b"three", cas) is None
assert client.add("a", b"x") is False
assert client.replace("b", b"x") is False
assert client.append("a", b"!") and client.prepend("a", b"?")
assert client.get("a") == b"?two!"

many = {"key%d" % i: (b"%d " % i) * 1000 for i in range(200)}
assert client.set_many(many) == []
assert client.get_many(list(many) + ["missing"]) == many
assert len(client.gets_many(list(many))) == 200
assert client.delete_many(list(many))
assert client.get_many(list(many)) == {}

assert client.set("n", b"9")
assert client.incr("n", 5) == 14
assert client.decr("n", 100) == 0
assert client.incr("missing", 1) is None
assert client.touch("a", 50) is True
assert client.touch("missing", 50) is False
assert client.delete("a") is True
assert client.delete("a") is False
assert client.get("a") is None

for i in range(1000):
    client.set("quiet%d" % i, b"v", noreply=True)
assert client.get("quiet999") == b"v"
large = bytes(range(256)) * 3000
assert client.set("large", large) and client.get("large") == large
try:
    client.set("large", b"x" * (2 << 20))
    raise SystemExit("2 MiB were stored")
except MemcacheServerError as error:
    assert b"object too large" in error.args[0], error
assert client.get("large") is None
assert client.stats()[b"curr_items"] > 0
assert client.version().startswith(b"1.6.")
assert client.cache_memlimit(128)
# Meta commands go through as they are.
assert client.raw_command("ms raw 2\r\nhi", b"\r\n") == b"HD"
assert client.raw_command("mg raw v t", b"hi\r\n") == b"VA 2 t-1\r\n"
client.quit()
print("OK")
