"""Talks to the server named on the command line with pylibmc, libmemcached's Python face."""

import sys

import pylibmc

client = pylibmc.Client([sys.argv[1]], binary=False, behaviors={"cas": True, "tcp_nodelay": True})

assert client.flush_all()
assert client.set("a", "one", time=100)
assert client.get("a") == "one"
value, cas = client.gets("a")
assert client.cas("a", "two", cas) is True
assert client.cas("a", "three", cas) is False
assert client.add("a", "x") is False
assert client.replace("b", "x") is False
assert client.set("text", b"b") and client.append("text", b"c") and client.prepend("text", b"a")
assert client.get("text") == b"abc"
many = {"key%d" % i: "value %d" % i * 500 for i in range(200)}
assert client.set_multi(many) == []
assert client.get_multi(list(many) + ["missing"]) == many
assert client.delete_multi(list(many))
assert client.get_multi(list(many)) == {}
assert client.set("n", 9)
assert client.incr("n", 5) == 14
assert client.decr("n", 4) == 10
assert client.touch("n", 50)
assert client.delete("n") and not client.delete("n")
large = bytes(range(256)) * 3000
assert client.set("large", large) and client.get("large") == large
assert client.set("flags", {"a": [1, 2.5, None]}) and client.get("flags") == {"a": [1, 2.5, None]}
(server, stats), = client.get_stats()
assert int(stats["curr_items"]) > 0, stats
client.disconnect_all()
print("OK")
