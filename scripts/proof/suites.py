"""The suites: which jobs there are, and what must be built for them."""
import glob
import os

from .job import Job

# Programs whose tests are independent and wait for processes: each test is a job of its own.
PROCESS_A_TEST = (
    "kirin/",
    "kirin-workers/suite",
    "kirin-memcache/suite",
    "kirin-store/suite",
    "kirin-ring/suite",
)
# Programs that start applications, which run once more over sockets, without the ring.
APPLICATIONS = ("kirin/apps", "kirin-workers/suite")
WITHOUT_RING = {"KIRIN_RING": "0"}
# The crates whose locks and atomics loom tests in all orders of threads. kirin-ring has its own.
WITH_ORDERS = ("kirin-balance", "kirin-gateway", "kirin-store", "kirin-workers")
# The tests against a real server behind the store.
OF_THE_ORIGIN = "kirin-origin/suite"
# What several machines share by that server.
SHARED_BY_MACHINES = ("kirin/operating acme_shared::", "kirin/operating web_origin::shared_limits::")
# Tests that start the program with the ring, or with and without it, whatever the environment says.
OF_THE_RING = ("kirin/apps silent_workers::", "kirin/apps suite::")
# Tests of each place from end to end, for a quick look, and those that take too long for each
# change.
SMOKE_LIST = "scripts/smoke-tests"
LONG_LIST = "scripts/long-tests"
KILLS = "kills::workers_killed_at_random"
# The tests of this example run against its application in Perl, and against those in other
# languages.
MEMO = "examples/memo"
MEMO_LANGUAGES = ("python", "ruby")
MEMO_PROGRAM, MEMO_TESTS = "kirin/pages", "kirin/pages memo_"
# Debian's packages are for Debian's own Python and Ruby, which need not be the first in PATH.
DEBIAN_PYTHON = "/usr/bin/python3"
DEBIAN_RUBY = "/usr/bin/ruby"
# What a Perl test uses when it starts the program.
STARTS_KIRIN = ("use NeedsKirin", "use Plackup", "use Served", "Kirin::Front::binary")

UNIT_THREADS = 2
# Those tests mostly wait for servers.
WAITING_THREADS = 6


def check(root, cargo):
    """Returns the checks of Rust that a quick look needs."""
    clippy = [cargo, "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]
    faults = [cargo, "clippy", "-p", "kirin-faults", "--features", "faults", "--all-targets", "--", "-D", "warnings"]
    return [
        Job("check", "format", [cargo, "fmt", "--all", "--", "--check"], root, needs_home=True),
        Job("check", "clippy", clippy, root, limit=900, needs_home=True),
        Job("check", "clippy of faults", faults, root, limit=300, needs_home=True),
    ]


def lint(root, cargo):
    """Returns the checks of everything that is no Rust, and of the house rules."""
    commands = {
        "dependencies": ["python3", "-B", "scripts/deny"],
        "perltidy": ["scripts/tidy-perl", "--check"],
        "scripts": ["python3", "-B", "-m", "unittest", "discover", "-q", "-s", "scripts/tests"],
        "circles": ["python3", "-B", "scripts/circles.py", "--most", "6"],
        "comments": ["python3", "-B", "scripts/comment-lint"],
        "security": ["python3", "-B", "scripts/security-promises"],
    }
    jobs = [
        Job("lint", name, command, root, limit=300, needs_home=True)
        for name, command in commands.items()
    ]
    # Beside the build of the workspace, which has checked the same crates of the registry.
    targets = [cargo, "check", "-q", "--locked", "--manifest-path", "fuzz/Cargo.toml"]
    targets += ["--no-default-features", "--target-dir", "target"]
    return [*jobs, Job("lint", "fuzz targets", targets, root, limit=900, needs_home=True)]


def units(programs):
    """Returns a job for each program of unit tests."""
    alone = [program for program in programs if not program.name.startswith(PROCESS_A_TEST)]
    return [program.unit_job("units", threads_of(program)) for program in alone]


def threads_of(program):
    """Returns how many tests of a program run at the same time."""
    return WAITING_THREADS if program.name == OF_THE_ORIGIN else UNIT_THREADS


def with_valkey(programs, root):
    """Returns the tests that start a redis-server, which is Valkey's instead: those of the origin, and
    of what several machines share.
    """
    directory = os.path.join(root, "target", "valkey")
    if not os.path.exists(os.path.join(directory, "redis-server")):
        return []
    jobs = [job for job in units(programs) if job.name == OF_THE_ORIGIN]
    for job in jobs:
        # That of PyPI has no TLS.
        job.command = [*job.command, "--skip", "with_tls"]
    chosen = [program for program in programs if program.name.startswith("kirin/")]
    jobs += only(one_by_one("long", chosen), SHARED_BY_MACHINES)
    for job in jobs:
        job.suite, job.name = "long", job.name + " with Valkey"
        path = os.environ.get("PATH", os.defpath)
        job.environment = {**job.environment, "PATH": f"{directory}{os.pathsep}{path}"}
    return jobs


def one_by_one(suite, programs, environment=None):
    """Returns a job for each test of these programs."""
    return [
        program.single_job(suite, test, environment)
        for program in programs
        for test in program.tests()
    ]


def programs(programs, root):
    """Returns a job for each test that has a process of its own. Those of the memo example run with
    all its applications."""
    chosen = [program for program in programs if program.name.startswith(PROCESS_A_TEST)]
    jobs = without(one_by_one("programs", chosen), listed(root, LONG_LIST))
    return jobs + [job for language in MEMO_LANGUAGES for job in memo_in(language, programs)]


def memo_in(language, programs):
    """Returns the tests of the memo example, with its application in another language."""
    chosen = [program for program in programs if program.name == MEMO_PROGRAM]
    path = os.environ.get("PATH", os.defpath)
    environment = {"MEMO_APP": language, "PATH": f"{os.path.dirname(DEBIAN_PYTHON)}{os.pathsep}{path}"}
    jobs = only(one_by_one("programs", chosen, environment), (MEMO_TESTS,))
    for job in jobs:
        job.name += f" in {language.title()}"
    return jobs


def sockets(programs, root):
    """Returns the tests of applications with the compiled part of the adapter switched off."""
    chosen = [program for program in programs if program.name in APPLICATIONS]
    jobs = one_by_one("sockets", chosen, WITHOUT_RING)
    return without(jobs, (*listed(root, LONG_LIST), *OF_THE_RING))


def smoke(programs, root):
    """Returns the tests that `scripts/smoke-tests` names."""
    chosen = [program for program in programs if program.name.startswith(PROCESS_A_TEST)]
    return only(one_by_one("smoke", chosen), listed(root, SMOKE_LIST))


def long(programs, root, cargo):
    """Returns what takes too long for each change: the tests of `scripts/long-tests` with and
    without the ring, random kills in full, all orders of threads and whether they find planted
    bugs, property tests with more cases, with Valkey, fuzzing, the instructions of requests, the training of a release, and the
    memo example on three machines."""
    chosen = [program for program in programs if program.name.startswith(PROCESS_A_TEST)]
    applications = [program for program in programs if program.name in APPLICATIONS]
    names = listed(root, LONG_LIST)
    loom = [cargo, "test", "-p", "kirin-ring", "--features", "loom", "--lib"]
    orders = [cargo, "test", "--lib", "--features", ",".join(f"{name}/loom" for name in WITH_ORDERS)]
    for name in WITH_ORDERS:
        orders += ["-p", name]
    orders.append("loom_tests")
    fuzz = ["scripts/fuzz", "--runs", "20000"]
    fuzz_tests = ["python3", "-B", "-m", "unittest", "discover", "-q", "-s", "fuzz/tests"]
    machines = ["bench/contest_machines.py", "--quick", "--build"]
    measuring = ["python3", "-B", "-m", "unittest", "discover", "-q", "-s", "bench"]
    jobs = [
        Job("long", "orders of the ring's threads", loom, root, limit=1800, needs_home=True),
        Job("long", "orders of threads", orders, root, limit=1800, needs_home=True),
        Job("long", "planted bugs", ["scripts/planted-bugs"], root, limit=1800, needs_home=True),
        Job("long", "fuzzing", fuzz, root, limit=1800, needs_home=True),
        Job("long", "fuzzing of a planted bug", fuzz_tests, root, limit=900, needs_home=True),
        Job("long", "instructions", ["bench/instructions.py", "--build"], root, limit=1800, needs_home=True),
        Job("long", "training", ["bench/training.py", "--requests", "64"], root),
        Job("long", "the measuring", measuring, root, limit=300),
        Job("long", "memo on three machines", machines, root, limit=300, needs_home=True),
    ]
    for job in one_by_one("long", chosen) + one_by_one("long-sockets", applications, WITHOUT_RING):
        if KILLS in job.name:
            job.environment = {**job.environment, "KIRIN_KILLS": "100000"}
            job.limit = 1800
            jobs.append(job)
    jobs += only(one_by_one("long", chosen), names)
    jobs += only(one_by_one("long-sockets", applications, WITHOUT_RING), names, may_lack=True)
    jobs += [redmine(root), *packages(root)]
    jobs += with_valkey(programs, root)
    for job in units(programs):
        job.suite, job.limit = "long-units", 1800
        job.environment = {"PROPTEST_CASES": "5000"}
        jobs.append(job)
    return jobs


def redmine(root):
    """Returns the comparison of Redmine on Kirin with Redmine on Puma."""
    directory = os.path.join(root, "adapters/ruby")
    command = [DEBIAN_RUBY, "-W", "-Ilib", "-Itest", "test/software/redmine_long.rb"]
    return Job("long", "Redmine beside Puma", command, directory, limit=600)


def packages(root):
    """Returns the tests of what a release consists of, and the tutorial on a clean machine."""
    jobs = []
    for directory in ("packaging/tests", "tests/first_hour"):
        for path in sorted(glob.glob(os.path.join(root, directory, "test_*.py"))):
            name = os.path.basename(path)
            command = [DEBIAN_PYTHON, "-B", "-m", "unittest", "discover", "-q", "-s", directory, "-p", name]
            job = Job("long", f"{directory}/{name}", command, root, limit=900, needs_home=True)
            jobs.append(job)
    return jobs


def listed(root, name):
    """Returns the lines of a list of tests: each is the begin of a job's name."""
    with open(os.path.join(root, name), encoding="utf-8") as file:
        lines = [line.split("#")[0].strip() for line in file]
    return tuple(line for line in lines if line)


def without(jobs, names):
    """Returns the jobs whose names begin with none of these."""
    return [job for job in jobs if not job.name.startswith(names)]


def only(jobs, names, may_lack=False):
    """Returns the jobs whose names begin with one of these. Each must begin a name."""
    for name in names:
        if not may_lack and not any(job.name.startswith(name) for job in jobs):
            raise ValueError(f"no test has the name {name}, which is in a list of scripts/")
    return [job for job in jobs if job.name.startswith(names)]


def perl(root):
    """Returns the files of Perl tests; those that start the program also without the ring, and those
    of the memo example also with its applications in other languages."""
    jobs = []
    for directory in ("adapters/perl", MEMO):
        for path in sorted(glob.glob(os.path.join(root, directory, "t/*.t"))):
            file = os.path.relpath(path, os.path.join(root, directory))
            name = f"{directory}/{file}"
            command = ["prove", "-l", file]
            here = os.path.join(root, directory)
            jobs.append(Job("perl", name, command, here, "perl", limit=300))
            for language in MEMO_LANGUAGES if directory == MEMO else ():
                job_name, environment = f"{name} in {language.title()}", {"MEMO_APP": language}
                jobs.append(Job("perl", job_name, command, here, "perl", environment, 300))
            with open(path, encoding="utf-8") as lines:
                starts_kirin = any(line.startswith(STARTS_KIRIN) for line in lines)
            if starts_kirin and directory == "adapters/perl":
                jobs.append(Job("perl-sockets", name, command, here, "perl", WITHOUT_RING, 300))
    ring = os.path.join(root, "adapters/ring")
    for path in sorted(glob.glob(os.path.join(ring, "t/*.t"))):
        file = os.path.relpath(path, ring)
        jobs.append(Job("perl", f"adapters/ring/{file}", ["prove", file], ring, "perl", limit=300))
    return jobs


def python(root):
    """Returns the files of Python tests."""
    jobs = []
    for tested, interpreter in (
        ("adapters/python", "python3"),
        ("examples/memo-python", DEBIAN_PYTHON),
    ):
        directory = os.path.join(root, tested)
        for path in sorted(glob.glob(os.path.join(directory, "tests/**/test_*.py"), recursive=True)):
            file = os.path.relpath(path, directory)
            place, name = os.path.split(file)
            command = [interpreter, "-B", "-m", "unittest", "discover", "-q", "-s", place, "-p", name]
            jobs.append(Job("python", f"{tested}/{file}", command, directory, limit=300))
    return jobs


def ruby(root):
    """Returns the files of Ruby tests."""
    jobs = []
    for tested in ("adapters/ruby", "examples/memo-ruby"):
        directory = os.path.join(root, tested)
        for path in sorted(glob.glob(os.path.join(directory, "test/**/*_test.rb"), recursive=True)):
            file = os.path.relpath(path, directory)
            command = [DEBIAN_RUBY, "-W", "-Ilib", "-Itest", file]
            jobs.append(Job("ruby", f"{tested}/{file}", command, directory, limit=300))
    return jobs


def browser(root):
    """Returns the tests with a browser: all applications of the memo example, and HTTP/3."""
    http3 = Job("browser", "http3", ["scripts/browser-http3"], root, limit=300)
    memo = [
        Job("browser", f"memo in {language}", ["scripts/browser-test", language], root, limit=300)
        for language in ("perl", *MEMO_LANGUAGES)
    ]
    return [*memo, http3]


def faults(root):
    """Returns the program under faults by plan, and the tests of what checks it."""
    plan = ["scripts/faults", "--build", "--jobs", "2"]
    checkers = ["target/http2-clients/python/bin/python", "-B", "-m", "unittest", "discover", "-q"]
    return [
        Job("faults", "faults by plan", plan, root, limit=1800, needs_home=True),
        Job("faults", "their checkers", [*checkers, "-s", "tests/faults/tests"], root),
    ]


def documentation(root, cargo):
    """Returns the examples in doc comments of Rust."""
    command = [cargo, "test", "--workspace", "--doc"]
    return [Job("units", "doc comments", command, root, limit=900, needs_home=True)]
