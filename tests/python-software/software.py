"""Where the programs are that these tests run: Kirin, and the Python with the frameworks."""
import os
import sys

REPOSITORY = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
APPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "apps")

# `waiting` is shared with the tests of the adapter.
sys.path.insert(0, os.path.join(REPOSITORY, "adapters", "python", "tests"))


def kirin():
    """Returns the path of the built program. A missing one fails the test."""
    path = os.environ.get("KIRIN_BINARY") or os.path.join(REPOSITORY, "target", "debug", "kirin")
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"{path} is missing: cargo build -p kirin")
    return os.path.abspath(path)


def environment():
    """Returns the virtual environment with the frameworks. A missing one fails the test."""
    version = "%d.%d" % sys.version_info[:2]
    directory = os.environ.get("KIRIN_PYTHON_SOFTWARE") or os.path.join(
        REPOSITORY, "target", "python-software"
    )
    path = os.path.join(directory, version)
    if not os.path.exists(os.path.join(path, "bin", "gunicorn")):
        raise FileNotFoundError(
            f"{path} has no gunicorn: scripts/install-tools. It needs Python 3.11 or later"
        )
    return os.path.abspath(path)


def python():
    """Returns the Python of this environment."""
    return os.path.join(environment(), "bin", "python")


def make_importable():
    """Makes the packages of the environment importable. The tests use a client of WebSockets."""
    version = "python%d.%d" % sys.version_info[:2]
    packages = os.path.join(environment(), "lib", version, "site-packages")
    if packages not in sys.path:
        sys.path.append(packages)
