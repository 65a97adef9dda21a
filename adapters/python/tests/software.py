"""The packages from PyPI that the tests use; install_software.sh installs them."""
import os
import sys

REPOSITORY = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


def software(name):
    """Makes a package importable. A missing one fails the tests of a module.

    Returns the virtual environment that has it.
    """
    version = "%d.%d" % sys.version_info[:2]
    directory = os.environ.get("KIRIN_PYTHON_SOFTWARE") or os.path.join(
        REPOSITORY, "target", "python-software"
    )
    environment = os.path.join(directory, version)
    packages = os.path.join(environment, "lib", f"python{version}", "site-packages")
    if not os.path.isdir(os.path.join(packages, name)):
        raise ImportError(
            f"{name} for Python {version} is not installed:"
            f" adapters/python/tests/install_software.sh {sys.executable}"
        )
    if packages not in sys.path:
        # It comes first: this Python may have another version of the same package.
        sys.path.insert(0, packages)
    return environment
