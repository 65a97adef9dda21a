"""One seed: a program, its visitors, its operator, and what must be true in the end."""
import os
import random
import re
import shutil
import signal
import tempfile
import threading

from . import site
from .process import Ended, Program, wait_for
from .upstream import Upstream
from .visits import KINDS, Visitor, Wrong

# How long the program may take until everything works again.
RECOVERY = 20.0
# Connections to servers that stay open for the next request, and files that stay open.
KEPT_OPEN = 8
# The share of the seeds whose operator upgrades the program.
UPGRADING = 0.3
# The time in a line of the access log. A write that fails may leave a part of a line.
LINE_TIME = re.compile(r"\[\d\d/[A-Z][a-z]{2}/\d{4}:")


class Outcome:
    """What a seed has shown."""

    def __init__(self, seed, directory):
        self.seed = seed
        self.directory = directory
        self.wrong = []
        self.points = {}
        self.answered = {}
        self.refused = {}


class Trial:
    """A run of one seed."""

    def __init__(self, binary, seed, visits, is_kept=False):
        self.random = random.Random(seed)
        self.visits = visits
        self.is_kept = is_kept
        self.has_had_faults = False
        self.directory = tempfile.mkdtemp(prefix=f"kirin-faults-{seed}-")
        self.outcome = Outcome(seed, self.directory)
        site.build(self.directory, threads=self.random.choice((1, 2)))
        self.upstream = Upstream(os.path.join(self.directory, "api.sock"))
        self.binary = binary
        self.program = None
        self.upgrades = self.random.random() < UPGRADING
        self.visitors = []

    def visitor(self, number):
        """Returns a new visitor."""
        choices = random.Random(self.random.random())
        store = os.path.join(self.directory, "store.sock")
        return Visitor(number, self.program.addresses, store, choices, self.upgrades)

    def run(self):
        """Carries the trial out. Returns the outcome."""
        try:
            self.program = Program(self.binary, self.directory, self.outcome.seed)
            self.visitors += [self.visitor(number) for number in range(self.random.randrange(1, 5))]
            self.round(self.visitor(1000))
            before = self.program.descriptors()
            self.has_had_faults = True
            self.program.begin_faults()
            self.visit_with_faults()
            self.outcome.points = self.program.end_faults()
            self.recover()
            self.settle(before)
            status = self.program.stop()
            if status not in (0, None):
                self.outcome.wrong.append(f"the program ends with status {status}")
        # What the harness did not expect is a failure, too.
        except Exception as error:  # pylint: disable=broad-except
            self.outcome.wrong.append(repr(error))
        finally:
            for visitor in self.visitors:
                visitor.close()
            if self.program:
                self.program.kill()
                self.check_traces()
            self.upstream.close()
        for visitor in self.visitors:
            add(self.outcome.answered, visitor.answered)
            add(self.outcome.refused, visitor.refused)
        if not self.outcome.wrong and not self.is_kept:
            shutil.rmtree(self.directory)
        return self.outcome

    def round(self, visitor):
        """Makes each kind of visit, without faults."""
        for kind in sorted(set(KINDS)):
            if not visitor.visit(kind):
                # An upgrade that was asked for during a reload comes later, and ends connections.
                if not (self.upgrades and self.has_had_faults):
                    raise Wrong(f"{kind} does not work without faults")
                wait_for(f"{kind} to work", RECOVERY, lambda kind=kind: visitor.visit(kind))
        visitor.close()

    def visit_with_faults(self):
        """Lets all visitors make their visits, while an operator works."""
        threads = [threading.Thread(target=self.keep_visiting, args=(one,)) for one in self.visitors]
        for thread in threads:
            thread.start()
        work = [self.kill_worker, self.kill_worker, self.kill_parent, self.reload, self.reload]
        if self.upgrades:
            work.append(self.upgrade)
        while any(thread.is_alive() for thread in threads):
            if self.random.random() < 0.3:
                self.random.choice(work)()
            threads[0].join(0.1)
        for thread in threads:
            thread.join()

    def keep_visiting(self, visitor):
        """Makes the visits of one visitor."""
        for _ in range(self.visits):
            try:
                visitor.visit()
            except Exception as error:  # pylint: disable=broad-except
                self.outcome.wrong.append(f"visitor {visitor.number}: {error!r}")
                return

    def kill_worker(self):
        """Kills a worker, as the kernel does when memory is short."""
        _, workers = self.program.parents_and_workers()
        self.kill_one(workers)

    def kill_parent(self):
        """Kills the parent of an application."""
        parents, _ = self.program.parents_and_workers()
        self.kill_one(parents)

    def kill_one(self, processes):
        """Kills one of some processes."""
        if processes:
            try:
                os.kill(self.random.choice(processes), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def reload(self):
        """Loads the configuration and the application again."""
        self.program.signal(signal.SIGHUP)

    def upgrade(self):
        """Lets another process take over."""
        self.program.signal(signal.SIGUSR2)

    def recover(self):
        """Waits until everything works, and then expects that it goes on to work."""
        self.program.wait_for_upgrades()
        visitor = self.visitor(1001)
        for kind in sorted(set(KINDS)):
            wait_for(f"{kind} to work again", RECOVERY, lambda kind=kind: visitor.visit(kind))
        for _ in range(2):
            self.round(visitor)
        for visitor in self.visitors:
            visitor.close()
            wait_for("all items", RECOVERY, lambda visitor=visitor: visitor.check_items())
            visitor.close()

    def settle(self, before):
        """Checks that nothing is left of what visitors had."""
        left = {}

        def is_settled():
            left.clear()
            left.update(self.left_in_metrics())
            left.update(left_open(before, self.program.descriptors()))
            return not left

        try:
            wait_for("", RECOVERY, is_settled)
        except Ended:
            raise Wrong(f"left: {left}") from None

    def left_in_metrics(self):
        """Returns the gauges that are not what they are without visitors."""
        wanted = {'kirin_app_workers{app="web",state="idle"}': 3.0}
        zero = (
            "kirin_connections{", "kirin_client_held_bytes{", "kirin_app_workers{",
            "kirin_app_waiting_requests{", "kirin_upstream_server_in_flight{",
            "kirin_upstream_waiting_requests{", "kirin_cgi_waiting_requests{", "kirin_panics_total",
        )  # fmt: skip
        metrics = self.program.metrics()
        found = {name: "missing" for name in wanted if name not in metrics}
        for name, value in metrics.items():
            expected = wanted.get(name, 0.0 if name.startswith(zero) else value)
            if value != expected:
                found[name] = value
        return found

    def check_traces(self):
        """Checks what the program and its servers have written."""
        with open(os.path.join(self.directory, "carried-out"), encoding="ascii") as file:
            carried_out = file.read().split()
        carried_out += [name for name in self.upstream.received if name.startswith("POST")]
        twice = {name for name in carried_out if carried_out.count(name) > 1}
        if twice:
            self.outcome.wrong.append(f"carried out twice: {sorted(twice)[:5]}")
        log = self.program.log()
        # A visitor is there, but a read has failed, and so its body is not whole.
        may_be_bad = re.search(r"^faults: client\.(read|watch) \d+ fails", log, re.M)
        if any(visitor.bad_requests for visitor in self.visitors) and not may_be_bad:
            self.outcome.wrong.append("POST is a bad request although no read has failed")
        for line in log.splitlines():
            if "panicked" in line or "a mistake in Kirin" in line:
                self.outcome.wrong.append(line)
        with open(os.path.join(self.directory, "access.log"), encoding="utf-8") as file:
            joined = [line for line in file if len(LINE_TIME.findall(line)) > 1]
        # Two processes that write parts of lines at the same time cannot but join them.
        if joined and not self.upgrades:
            self.outcome.wrong.append(f"{len(joined)} lines of the access log are joined: {joined[0]!r}")


def left_open(before, now):
    """Returns the kinds of descriptors that are more than before, or files that should be closed."""

    def kinds(descriptors):
        found = {}
        for target in descriptors.values():
            kind = "deleted file" if target.endswith("(deleted)") else re.sub(r":.*", "", target)
            kind = "file" if kind.startswith("/") else kind
            found[kind] = found.get(kind, 0) + 1
        return found

    earlier, later = kinds(before), kinds(now)
    limits = {"socket": KEPT_OPEN, "file": KEPT_OPEN, "pipe": KEPT_OPEN}
    return {
        f"descriptors of {kind}": f"{count} instead of {earlier.get(kind, 0)}"
        for kind, count in later.items()
        if count > earlier.get(kind, 0) + limits.get(kind, 0)
    }


def add(sums, counts):
    """Adds counts to sums."""
    for name, count in counts.items():
        sums[name] = sums.get(name, 0) + count
