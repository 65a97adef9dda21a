#!/usr/bin/env python3
"""Counts the instructions that Kirin executes for one request, in user space.

Times scatter by 20 % on shared machines, so a change of 3 % is not seen in them. Counts do not
scatter. Kirin runs under callgrind (Debian's package valgrind), gets requests on one kept connection,
and the instructions between two dumps are divided by the number of requests. The kernel is not
counted, nor are application workers.

valgrind 3.19 cannot run a release build: it does not give the program the vDSO that rustix reads.
`--build` builds one with the C library below rustix, in target/counted.

    bench/instructions.py --build                      # fails if a count is 1 % above the file
    bench/instructions.py --build --write              # after a change that is meant to move it

valgrind 3.19 knows no openat2(2) either, so `files:` cannot be counted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import grpc_echo
from host import BENCH, REPOSITORY, BenchError
from peers import memcached
from raw_clients import Http1, Http2, Memcached
from serving import serve_upstream, serving, wait_for

COUNTS = BENCH / "instructions.toml"
BUILT = REPOSITORY / "target" / "counted"
BUILD = [os.environ.get("CARGO", "cargo"), "build", "-p", "kirin", "--release", "--target-dir", str(BUILT)]
BUILD_FLAGS = "--cfg rustix_use_libc"

WARM_REQUESTS = 300
"""Requests before the count: caches are filled, and lazy parts are created."""

REQUESTS = 1000
"""Requests that are counted together. Work that is due each second then counts little."""

ROUNDS = 3
"""How often they are counted. The smallest count is the result: other work of the process can only
add to it."""

ALLOCATOR = "_RJEM_MALLOC_CONF=tcache_gc_incr_bytes:1073741824"
"""Keeps jemalloc from giving memory of its threads' caches back after each 64 KiB that were allocated
(`opt.tcache_gc_incr_bytes`). What that costs depends on where memory lies in a process: an include
took 7550 to 8000 instructions, and always the same in one process."""

PACE_SECONDS = 1.0 / 900.0
"""The least time from one request to the next. The live table counts each of the first 1,000 answers
of a second, and then one in 16, so the count would depend on the speed of the machine."""

COPY_LIMIT = 1.02
"""How many times the instructions of a hit one may take whose item is a copy of an origin's."""

CONNECT_WITHIN_SECONDS = 120.0

IDLE_SECONDS = 6.0
"""For how long the work that is due each second is counted, which is no work for requests. An origin
is asked twice a second: a look more or less must not matter."""

IDLE_LOOKS = 3
"""How often all threads must be seen asleep. Under valgrind one runs at a time, and in the moment in
which they change none does."""

BODY = b"<" * 1024
PAGE = b"text/html\r\n" + BODY

BROWSER = (
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: de,en-US;q=0.7,en;q=0.3\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: http://127.0.0.1/index\r\n"
    "Cookie: theme=dark; _ga=GA1.1.1234567890.1234567890; sid=0123456789abcdef\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n"
    "Priority: u=0, i\r\n"
)


@dataclass(frozen=True)
class Counted:
    """The instructions of one request."""

    total: float
    functions: dict[str, float]
    """Those of each function, without the functions that it calls."""
    callees: dict[str, float]
    """Those that each function makes others execute."""

    @classmethod
    def parse(cls, dump: str) -> Counted:
        """Parses a dump (Callgrind Format Specification, without compressed names)."""
        own: dict[str, int] = {}
        callees: dict[str, int] = {}
        name, is_of_call, total = "", False, 0
        for line in dump.splitlines():
            if line.startswith("fn="):
                name = line[3:]
            elif line.startswith("calls="):
                is_of_call = True
            elif line.startswith("totals: "):
                total = int(line.split()[1])
            elif line[:1].isdigit() or line.startswith(("+", "-", "*")):
                # The line behind `calls=` has the instructions of the function that is called.
                counts = callees if is_of_call else own
                counts[name] = counts.get(name, 0) + int(line.split()[-1])
                is_of_call = False
        return cls(total / REQUESTS, each(own), each(callees))

    def part(self, functions: Sequence[str]) -> float:
        """Returns the instructions of functions, with all that they call. A name that ends in `*` is
        the begin of names."""
        begins = tuple(name[:-1] for name in functions if name.endswith("*"))
        all_names = {*self.functions, *self.callees}
        names = [name for name in all_names if name in functions or begins and name.startswith(begins)]
        return sum(self.functions.get(name, 0.0) + self.callees.get(name, 0.0) for name in names)


def each(counts: dict[str, int]) -> dict[str, float]:
    """Returns the counts of one request."""
    return {name: count / REQUESTS for name, count in counts.items()}


@dataclass(frozen=True)
class Kirin:
    """A Kirin under callgrind."""

    pid: int
    port: int
    store: Path
    """Its memcached socket."""
    directory: Path

    def instructions(self, ask: Callable[[], None], at_once: int = 1) -> Counted:
        """Returns the instructions of one request. `ask` makes `at_once` of them."""
        for _ in range(WARM_REQUESTS // at_once):
            ask()
        idle, seconds = self._counted(lambda: time.sleep(IDLE_SECONDS))
        rounds = [self._round(ask, at_once, idle.total / seconds) for _ in range(ROUNDS)]
        return min(rounds, key=lambda counted: counted.total)

    def _round(self, ask: Callable[[], None], at_once: int, idle_a_second: float) -> Counted:
        def work() -> None:
            start = time.monotonic()
            for number in range(at_once, REQUESTS + 1, at_once):
                ask()
                self._wait_until_idle()
                time.sleep(max(0.0, start + number * PACE_SECONDS - time.monotonic()))

        counted, seconds = self._counted(work)
        return replace(counted, total=counted.total - idle_a_second * seconds)

    def _counted(self, work: Callable[[], None]) -> tuple[Counted, float]:
        """Returns the instructions during some work, and how long it took."""
        self._control("--zero")
        start = time.monotonic()
        work()
        before = set(self.directory.glob("counts.*"))
        self._control("--dump")
        seconds = time.monotonic() - start
        dump = wait_for(lambda: new_dump(set(self.directory.glob("counts.*")) - before), 30.0)
        if dump is None:
            raise BenchError("callgrind has written no counts")
        return Counted.parse(dump), seconds

    def _wait_until_idle(self) -> None:
        """Waits until all threads sleep. A request that comes earlier saves a wait for it."""
        tasks = Path(f"/proc/{self.pid}/task")
        seen = 0
        while seen < IDLE_LOOKS:
            seen = seen + 1 if all(is_asleep(task) for task in tasks.iterdir()) else 0

    def _control(self, command: str) -> None:
        done = subprocess.run(
            ["callgrind_control", command, str(self.pid)], capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode != 0:
            raise BenchError(f"callgrind_control {command}: {done.stdout}{done.stderr}")


def is_asleep(task: Path) -> bool:
    """Returns whether a thread sleeps, or has ended."""
    try:
        # proc(5): the state comes after the name, which is in parentheses.
        return (task / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"S"
    except OSError:
        return True


def new_dump(files: set[Path]) -> str | None:
    """Returns the text of the only file, when it is complete."""
    texts = (file.read_text(errors="replace") for file in files)
    return next((text for text in texts if re.search(r"^totals: ", text, re.MULTILINE)), None)


# What is counted


PAGES = '[[route]]\npath = "/"\ntry = ["store"]\n'


@dataclass(frozen=True)
class Case:
    """A kind of request. `client` makes one that is answered from `routes`."""

    name: str
    client: Callable[[Kirin], Callable[[], None]]
    routes: str = PAGES
    listener: str = ""
    """More keys of the listener."""

    scatter: int = 0
    """The instructions by which two counts may differ: a worker may answer before Kirin waits."""

    copy_of: str = ""
    """The case that this one is with an origin, whose item is a copy. Its count may be COPY_LIMIT times
    the count of that case. Empty without an origin."""

    at_once: int = 1
    """How many requests the client makes in one write. The count is that of one of them."""


PROXY = '[[upstream]]\nname = "behind"\nservers = ["127.0.0.1:BEHIND"]\n[[route]]\npath = "/"\ntry = ["proxy:behind"]\n'
GRPC = PROXY.replace("127.0.0.1:BEHIND", "h2c://127.0.0.1:ECHO")
INCLUDING = b'text/html\r\n<!--#include virtual="/page" -->' + BODY

TEN = 10
"""The streams of one write. The count is that of one of them."""

CALL = "".join(f"{field}\r\n" for field in grpc_echo.FIELDS)

APPLICATION = (
    '[[app]]\nname = "web"\nload = "DIRECTORY/app.psgi"\nworkers = 1\n[[route]]\npath = "/"\ntry = ["app:web"]\n'
)
PSGI = "sub { [200, ['Content-Type' => 'text/html', 'Content-Length' => 1024], ['<' x 1024]] };\n"


def many_sites() -> str:
    """Returns the sections of 100 sites. The client asks for the last one, which has 100 routes."""

    def route(path: str) -> str:
        return f'[[site.route]]\npath = "{path}"\ntry = ["store"]\n'

    others = "".join(f'[[site]]\nhosts = ["{number}.test"]\n{route("/")}' for number in range(99))
    routes = "".join(route(f"/part{number}") for number in range(99))
    return f'{others}[[site]]\nhosts = ["127.0.0.1"]\n{routes}{route("/page")}'


CASES = (
    Case("page", lambda kirin: Http1(kirin.port, "/page")),
    Case("page_for_browser", lambda kirin: Http1(kirin.port, "/page", BROWSER)),
    Case("page_of_site", lambda kirin: Http1(kirin.port, "/page"), many_sites()),
    Case("page_logged", lambda kirin: Http1(kirin.port, "/page"), listener='access_log = "DIRECTORY/access.log"\n'),
    Case("page_with_include", lambda kirin: Http1(kirin.port, "/including")),
    Case("page_copy", lambda kirin: Http1(kirin.port, "/page"), scatter=100, copy_of="page"),
    Case("page_by_http2", lambda kirin: Http2(kirin.port, "/page")),
    Case("browser_by_http2", lambda kirin: Http2(kirin.port, "/page", BROWSER)),
    Case("ten_pages_by_http2", lambda kirin: Http2(kirin.port, "/page", streams=TEN), at_once=TEN),
    Case("psgi_by_http2", lambda kirin: Http2(kirin.port, "/page"), APPLICATION, scatter=300),
    Case("proxied_by_http2", lambda kirin: Http2(kirin.port, "/page"), PROXY),
    Case("grpc", lambda kirin: Http2(kirin.port, "/echo.Echo/Echo", CALL, body=grpc_echo.MESSAGE), GRPC),
    Case("psgi", lambda kirin: Http1(kirin.port, "/page"), APPLICATION, scatter=300),
    Case("proxied", lambda kirin: Http1(kirin.port, "/page"), PROXY),
    Case("cached", lambda kirin: Http1(kirin.port, "/page"), PROXY + "cache = true\n"),
    Case("memcached_get", lambda kirin: Memcached(kirin.store, b"get /page\r\n", b"END\r\n")),
    Case("memcached_get_copy", lambda kirin: Memcached(kirin.store, b"get /page\r\n", b"END\r\n"), scatter=100, copy_of="memcached_get"),
    Case("memcached_set", lambda kirin: Memcached(kirin.store, b"set k 0 0 1024\r\n%s\r\n" % BODY, b"STORED\r\n")),
)


@dataclass(frozen=True)
class Part:
    """A part of a request of a case: functions with all that they call."""

    name: str
    case: str
    functions: tuple[str, ...]
    """The functions. A name that ends in `*` is the begin of names."""

    scatter: int = 0
    """The instructions by which two counts may differ: the seeds of hashes are random, and `Date` is
    encoded again each second."""


PARTS = (
    Part("head", "page", ("kirin_http::messages::request::parse",)),
    Part("store_place", "page", ("<kirin_gateway::places::store::StorePlace as *",)),
    Part("response_head", "page", ("kirin_server::http1::response_writer::write_head",)),
    Part("observers", "page", ("kirin_server::observation::Observers::end_at_once",)),
    Part("head_of_browser", "page_for_browser", ("kirin_http::messages::request::parse",)),
    Part("host", "page_of_site", ("kirin_gateway::routing::router::Router::find_site",), scatter=40),
    Part("route", "page_of_site", ("kirin_gateway::routing::route_table::RouteTable::find",), scatter=40),
    Part("log_line", "page_logged", ("kirin_server::logging::log_format::LogFormat::write_line",)),
    Part("include", "page_with_include", ("kirin_gateway::filters::ssi::assembly::Assembly::run",)),
    Part("hpack_decoder", "page_by_http2", ("kirin_h2::hpack::decoder::Decoder::decode",)),
    Part("hpack_encoder", "page_by_http2", ("kirin_h2::hpack::encoder::Encoder::field",), scatter=250),
    Part("ring_put", "psgi", ("kirin_ring::queue::Queue::put",)),
    # A loop may look once more or less before an answer is there.
    Part(
        "ring_collected",
        "psgi",
        ("kirin_workers::ring::requests::<impl kirin_workers::ring::shared_ring::SharedRing<C>>::collect",),
        scatter=100,
    ),
    Part("memcached_codec", "memcached_get", ("kirin_memcache::codec::parse",)),
    Part("memcached_answer", "memcached_get", ("kirin_memcache::execute::Executor::execute",), scatter=20),
)


@contextlib.contextmanager
def started(program: Path, case: Case) -> Iterator[Kirin]:
    """Starts a Kirin under callgrind, with the pages of all cases. Ends it at the end."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as behind:
        directory = Path(name)
        store = f"unix:{name}/store.sock"
        (directory / "app.psgi").write_text(PSGI)
        origin = f'origin = "{behind.enter_context(redis_server(directory))}"\n' if case.copy_of else ""
        text = (
            f'threads = 1\n[[listener]]\naddress = "127.0.0.1:0"\n{case.listener}'
            f'[store]\nmemory = "64MB"\nmemcached = ["{store}"]\n{origin}{case.routes}'
        )
        if "BEHIND" in text:
            text = text.replace("BEHIND", str(serve_upstream(BODY)))
        if "ECHO" in text:
            text = text.replace("ECHO", str(grpc_echo.serve()))
        (directory / "kirin.toml").write_text(text.replace("DIRECTORY", name))
        callgrind = ["env", ALLOCATOR, "valgrind", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={name}/counts"]
        with serving([*callgrind, program], directory) as (process, [port]):
            if case.copy_of and not wait_for(lambda: is_connected(store), CONNECT_WITHIN_SECONDS):
                raise BenchError("Kirin has not connected to its origin")
            # A site has its pages below its own name.
            for key, value in (("/page", PAGE), ("/including", INCLUDING), ("127.0.0.1:/page", PAGE)):
                memcached.set_item(store, key, value)
            yield Kirin(process.pid, port, directory / "store.sock", directory)


@contextlib.contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Starts a redis-server in the directory. Returns its address. Kills it at the end."""
    path = directory / "redis.sock"
    command = ["redis-server", "--port", "0", "--save", "", "--dir", directory, "--unixsocket", path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            if not wait_for(path.exists, CONNECT_WITHIN_SECONDS):
                raise BenchError("redis-server does not start")
            yield f"redis+unix://{path}"
        finally:
            server.kill()


def is_connected(store: str) -> bool:
    """Returns whether a Kirin is connected to its origin."""
    return memcached.statistics(store).get("origin_state") == "connected"


def count(program: Path, case: Case) -> Counted:
    """Returns the instructions of one request of this kind."""
    with started(program, case) as kirin:
        return kirin.instructions(case.client(kirin), case.at_once)


def counts_of(case: Case, counted: Counted) -> dict[str, int]:
    """Returns the instructions of a request of this kind, and of its parts, by their names."""
    parts = {part.name: round(counted.part(part.functions)) for part in PARTS if part.case == case.name}
    return {case.name: round(counted.total), **parts}


def above(case: Case, now: dict[str, int], before: dict[str, int], allowed: float) -> list[str]:
    """Returns the names whose counts are more than `allowed` per cent above those before."""
    scatter = {case.name: case.scatter, **{part.name: part.scatter for part in PARTS}}
    most = {name: before[name] * (1 + allowed / 100) + scatter[name] for name in now if before.get(name)}
    return [name for name, number in most.items() if now[name] > number]


def above_original(counts: dict[str, int], cases: Sequence[Case]) -> list[str]:
    """Returns the cases with an origin that take more than COPY_LIMIT times what they take without."""
    known = [case for case in cases if counts.get(case.name) and counts.get(case.copy_of)]
    most = {case.name: counts[case.copy_of] * COPY_LIMIT + case.scatter for case in known}
    return [name for name, number in most.items() if counts[name] > number]


def functions(now: Counted, before: Counted | None, most: int) -> Iterator[str]:
    """Returns lines for the functions with the most instructions, or with the largest change."""
    old = before.functions if before else {}
    names = set(now.functions) | set(old)
    change = {name: now.functions.get(name, 0.0) - old.get(name, 0.0) for name in names}
    for name in sorted(names, key=lambda name: -abs(change[name]))[:most]:
        row = f"{'':20} {now.functions.get(name, 0.0):12.0f} "
        yield row + (f"{old.get(name, 0.0):8.0f}   {change[name]:+6.0f}  {name}" if before else f" {name}")


# The command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true", help="build the program first")
    parser.add_argument("--kirin", type=Path, default=BUILT / "release/kirin", help="the program")
    parser.add_argument("--other", type=Path, help="another build, which is compared instead of the counts on file")
    parser.add_argument("--only", action="append", choices=[case.name for case in CASES], help="a kind of request")
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="show the first N functions")
    parser.add_argument("--write", action="store_true", help="write the counts to bench/instructions.toml")
    parser.add_argument("--allow", type=float, default=1.0, help="per cent that a count may be above (default 1)")
    arguments = parser.parse_args()
    if arguments.write and (arguments.only or arguments.other):
        parser.error("--write counts all kinds of requests of one build: leave --only and --other out")
    for needed in ("valgrind", "callgrind_control"):
        if shutil.which(needed) is None:
            raise BenchError(f"{needed} is missing: apt-get install valgrind")
    if arguments.build:
        flags = {**os.environ, "RUSTFLAGS": BUILD_FLAGS}
        if subprocess.run(BUILD, env=flags, cwd=REPOSITORY, check=False).returncode != 0:
            raise BenchError("the program was not built")
    for program in filter(None, (arguments.kirin, arguments.other)):
        if not program.is_file():
            raise BenchError(f"there is no {program}: --build builds the program")
    # memchr and the C library take other ways on other processors.
    has_avx2 = "avx2" in Path("/proc/cpuinfo").read_text().split()
    if arguments.write and not has_avx2:
        raise BenchError("the counts on file are those of processors with AVX2, which this one is not")
    cases = [case for case in CASES if not arguments.only or case.name in arguments.only]
    on_file = tomllib.loads(COUNTS.read_text())
    requests: dict[str, int] = {}
    parts: dict[str, int] = {}
    too_many, unknown = [], []
    print(f"{'':20} {'instructions':>12} {'before':>8}   change")
    for case in cases:
        other = count(arguments.other, case) if arguments.other else None
        before = counts_of(case, other) if other else {**on_file["requests"], **on_file["parts"]}
        counted = count(arguments.kirin, case)
        now = counts_of(case, counted)
        too_many += above(case, now, before, arguments.allow)
        unknown += [name for name, number in now.items() if number == 0]
        requests[case.name] = now[case.name]
        parts |= {name: number for name, number in now.items() if name != case.name}
        for name, number in now.items():
            print(row(name, number, before.get(name), is_part=name != case.name))
        for line in functions(counted, other, arguments.functions):
            print(line)
    too_dear = above_original(requests, cases)
    if too_dear:
        print(f"more than {COPY_LIMIT} times what they take without an origin: {', '.join(too_dear)}")
    if arguments.write:
        COUNTS.write_text(written(COUNTS.read_text(), {"requests": requests, "parts": parts}))
        return 0
    if unknown:
        print(f"no function of these parts was called: {', '.join(unknown)}. Name others in PARTS.")
    if too_many and not arguments.other and not has_avx2:
        print("The counts on file are those of processors with AVX2, which this one is not.")
        too_many = []
    if too_many:
        print(f"more than {arguments.allow} % above: {', '.join(too_many)}")
        print("If that is meant, write the counts with --write, and say in the commit why they grow.")
    return 1 if unknown or too_many or too_dear else 0


def row(name: str, now: int, before: int | None, is_part: bool) -> str:
    """Returns the line of a request or, indented, of a part."""
    text = f"{'  ' if is_part else ''}{name}"
    return f"{text:20} {now:12} {before or '':>8}" + (f"   {(now / before - 1) * 100:+.1f} %" if before else "")


def written(text: str, tables: dict[str, dict[str, int]]) -> str:
    """Returns the file with these tables. Its other tables and its comments stay."""
    for name, counts in tables.items():
        rows = "".join(f"{key} = {number}\n" for key, number in counts.items())
        text = re.sub(rf"^\[{name}\]\n(\w+ = \d+\n)*", f"[{name}]\n{rows}", text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as error:
        sys.exit(f"instructions: {error}")
