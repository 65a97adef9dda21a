"""Forwards datagrams between clients and a server, and harms them by a plan that a seed decides.

    lossy_proxy.py HOST:PORT [--loss P] [--reorder P] [--duplicate P] [--corrupt P] [--delay MS]
                   [--rebind N] [--seed N]

P is a percentage of the datagrams of each direction. --delay holds each datagram back for so long,
and a reordered one longer. --rebind gives the client another port at the server after each N
datagrams of it, as a NAT does that has forgotten it.

The first line of the output is the proxy's port. It ends with its input, and says what it did as
JSON."""
import argparse
import heapq
import json
import os
import random
import select
import socket
import sys
import time

# Seconds that a reordered datagram is held back.
HELD = 0.004


def parse():
    """Returns the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    for name in ("loss", "reorder", "duplicate", "corrupt", "delay"):
        parser.add_argument(f"--{name}", type=float, default=0)
    parser.add_argument("--rebind", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def udp():
    """Returns a socket on a free port."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    opened.bind(("127.0.0.1", 0))
    opened.setblocking(False)
    return opened


class Direction:
    """One direction: its own random numbers, so that the other does not change its plan."""

    def __init__(self, options, seed):
        self.options, self.random = options, random.Random(seed)
        self.counts = dict.fromkeys(
            ("received", "dropped", "reordered", "duplicated", "corrupted", "sent"), 0)

    def happens(self, what):
        """Decides whether something happens to a datagram."""
        return self.random.random() * 100 < getattr(self.options, what)

    def copies(self, datagram):
        """Yields each copy of a datagram that is to be sent, and the seconds to hold it back."""
        self.counts["received"] += 1
        # Each datagram takes the same number of random numbers, whatever happens to it.
        lost, late, twice, spoiled = map(self.happens, ("loss", "reorder", "duplicate", "corrupt"))
        place, bit = self.random.random(), self.random.randrange(8)
        if lost:
            self.counts["dropped"] += 1
            return
        if spoiled and datagram:
            self.counts["corrupted"] += 1
            at = int(place * len(datagram))
            datagram = datagram[:at] + bytes([datagram[at] ^ 1 << bit]) + datagram[at + 1:]
        self.counts["reordered"] += late
        wait = self.options.delay / 1000
        yield datagram, wait + (HELD * (1 + place) if late else 0)
        if twice:
            self.counts["duplicated"] += 1
            yield datagram, wait + HELD * place


class Proxy:
    """The sockets, and the datagrams that are held back."""

    def __init__(self, options):
        host, port = options.server.rsplit(":", 1)
        self.options, self.server = options, (host, int(port))
        self.front = udp()
        self.to_server, self.to_client = (Direction(options, options.seed * 2 + number)
                                          for number in (0, 1))
        # The socket towards the server of each client, and the client of each socket. A client
        # keeps its former sockets, since answers to them are on their way.
        self.back, self.client, self.sent_by = {}, {}, {}
        self.held, self.order = [], 0
        self.rebinds = 0

    def back_of(self, client):
        """Returns the socket that sends for a client."""
        count = self.sent_by[client] = self.sent_by.get(client, 0) + 1
        is_time = self.options.rebind and count % self.options.rebind == 0
        if client not in self.back or is_time:
            self.rebinds += client in self.back
            self.back[client] = udp()
            self.client[self.back[client]] = client
        return self.back[client]

    def send(self, direction, sender, datagram, address):
        """Sends a datagram. One that the kernel has no room for is lost."""
        try:
            sender.sendto(datagram, address)
            direction.counts["sent"] += 1
        except OSError:
            direction.counts["dropped"] += 1

    def forward(self, direction, sender, datagram, address):
        """Sends or holds back the copies of a datagram."""
        for copy, wait in direction.copies(datagram):
            if wait:
                self.order += 1
                due = time.monotonic() + wait
                heapq.heappush(self.held, (due, self.order, direction, sender, copy, address))
            else:
                self.send(direction, sender, copy, address)

    def take(self, ready):
        """Takes what a socket has received."""
        for _ in range(64):
            try:
                datagram, source = ready.recvfrom(65536)
            except OSError:
                return
            if ready is self.front:
                self.forward(self.to_server, self.back_of(source), datagram, self.server)
            else:
                self.forward(self.to_client, self.front, datagram, self.client[ready])

    def run(self):
        """Forwards until the input ends."""
        print(self.front.getsockname()[1], flush=True)
        while True:
            now = time.monotonic()
            while self.held and self.held[0][0] <= now:
                self.send(*heapq.heappop(self.held)[2:])
            wait = max(0, self.held[0][0] - now) if self.held else None
            readable, _, _ = select.select([sys.stdin, self.front, *self.client], [], [], wait)
            for ready in readable:
                if ready is not sys.stdin:
                    self.take(ready)
                elif not os.read(ready.fileno(), 100):
                    return

    def report(self):
        """Returns what it did."""
        return {"to_server": self.to_server.counts, "to_client": self.to_client.counts,
                "clients": len(self.back), "rebinds": self.rebinds}


def main():
    proxy = Proxy(parse())
    proxy.run()
    print(json.dumps(proxy.report()))


main()
