"""What the tests of packages share: the program, the packages, and a Debian to install them in."""
import atexit
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("KIRIN_BINARY") or os.path.join(ROOT, "target/debug/kirin")
# Packages of a test need not be small.
QUICK = {**os.environ, "DPKG_DEB_COMPRESSOR_LEVEL": "0", "XZ_OPT": "-0"}
WAIT = 60.0 * float(os.environ.get("KIRIN_TEST_WAIT_FACTOR", "1"))
# The packages of a Debian in which Kirin is installed, on top of the smallest one.
SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
INCLUDED = "adduser,ca-certificates,libplack-perl,logrotate,python3,systemd"


def run(*command, **options):
    """Runs a command, and returns its output. A failure shows what it has printed."""
    options = {"env": QUICK, "cwd": ROOT, "timeout": 600, **options}
    ended = subprocess.run(command, capture_output=True, text=True, **options)
    if ended.returncode != 0:
        said = ended.stdout + ended.stderr
        raise AssertionError(f"{command} ended with {ended.returncode}\n{said}")
    return ended.stdout


def wait_for(what, condition):
    """Waits until `condition` returns something, and returns that."""
    end = time.monotonic() + WAIT
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {WAIT:.0f} s for {what}")
        time.sleep(0.05)
    return found


@functools.lru_cache(maxsize=None)
def temporary_directory():
    """Returns a directory that is removed when the tests have ended."""
    directory = tempfile.mkdtemp(prefix="kpkg-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def build_package(name):
    """Builds the Debian packages in a new directory, and returns the path of kirin's."""
    output = os.path.join(temporary_directory(), name)
    return run("packaging/build-deb", "--program", PROGRAM, "--output", output).strip()


def debian(included=INCLUDED):
    """Returns the directory of a Debian with these packages on top of the smallest one. It is made
    once on a machine, and never changed.
    """
    recipe = f"{SUITE} {MIRROR} {included}"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = f"debian-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    directory = os.path.join(cache, "kirin/tools", name)
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with open(f"{directory}.lock", "w", encoding="ascii") as lock:
        # Another test run of this machine may be at it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(directory, "complete")):
            shutil.rmtree(directory, ignore_errors=True)
            root = os.path.join(directory, "root")
            os.makedirs(directory)
            options = ["--variant=minbase", f"--include={included}"]
            run("debootstrap", *options, SUITE, root, MIRROR)
            shutil.rmtree(os.path.join(root, "var/cache/apt/archives"))
            with open(os.path.join(directory, "complete"), "w", encoding="ascii"):
                pass
    return os.path.join(directory, "root")


def missing_for_namespaces(*programs):
    """Returns why a test cannot have a Debian of its own, or None."""
    if os.geteuid() != 0:
        return "only root has namespaces"
    for program in ("debootstrap", *programs):
        if not shutil.which(program):
            return f"{program} is missing: apt-get install {program}"
    if subprocess.run(["unshare", "--pid", "--fork", "--mount", "true"]).returncode != 0:
        return "this machine gives no namespaces"
    return None
