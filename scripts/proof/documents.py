"""The tests of what a newcomer reads and runs: pages of the documentation, examples, the site."""
import glob
import os

from .job import Job

# Pages that have nothing to run but text.
PAGES = ("docs/tutorial.md", "docs/ja/tutorial.md", "docs/guides/*.md", "docs/explanations/*.md")
RUNNER = "tests/documentation"
# Examples whose applications take long to install or to start: only `make test-long` runs them.
LARGE_EXAMPLES = {"request-tracker"}
# Debian's packages are for Debian's own Python, which need not be the first in PATH.
UNITTEST = ["/usr/bin/python3", "-B", "-m", "unittest"]


def pages(root):
    """Returns a job for each page that a reader can follow, and the tests of the runner."""
    discover = [*UNITTEST, "discover", "-q", "-s", "."]
    jobs = [Job("docs", "the runner of pages", discover, os.path.join(root, RUNNER))]
    for pattern in PAGES:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            page = os.path.relpath(path, root)
            command = ["/usr/bin/python3", "-B", f"{RUNNER}/run_page.py", page]
            jobs.append(Job("docs", page, command, root, limit=300))
    return jobs


def examples(root, large=False):
    """Returns a job for each example with tests of the gallery: the small ones, or the large ones."""
    jobs = []
    for path in sorted(glob.glob(os.path.join(root, "examples/*/tests/test_*.py"))):
        file = os.path.relpath(path, root)
        example = file.split(os.sep)[1]
        if example == "memo-python" or (example in LARGE_EXAMPLES) != large:
            continue
        command = ["scripts/own-network", *UNITTEST, file]
        environment = {"PYTHONPATH": os.path.join(root, "tests", "gallery")}
        suite = "long" if large else "docs"
        jobs.append(Job(suite, f"example {example}", command, root, "command", environment, 600))
    return jobs


def site(root):
    """Returns the test of the documentation site in a browser."""
    return [Job("docs", "the site in a browser", ["scripts/site-test"], root, limit=600)]
