"""The tests of what a newcomer reads and runs: pages of the documentation, examples, the site."""
import glob
import os

from .job import Job

TUTORIAL = "docs/tutorial.md"
# Pages that a reader follows.
PAGES = (TUTORIAL, "docs/ja/tutorial.md", "docs/guides/*.md", "docs/explanations/*.md")
# Their README is no page that can be run: it has only tables.
MEMO = {"memo", "memo-python", "memo-ruby"}
RUNNER = "tests/documentation"
# Debian's packages are for Debian's own Python, which need not be the first in PATH.
UNITTEST = ["/usr/bin/python3", "-B", "-m", "unittest"]


def tutorial(root):
    """Returns what each change runs: the runner of pages, and the first page that a newcomer reads."""
    return [runner(root), page(root, TUTORIAL)]


def all_documents(root):
    """Returns the tests of all pages, all examples and the site."""
    return [runner(root), reference(root), *pages(root), *examples(root), *site(root)]


def runner(root):
    """Returns the tests of the program that does what a page says."""
    command = [*UNITTEST, "discover", "-q", "-s", "."]
    return Job("docs", "the runner of pages", command, os.path.join(root, RUNNER))


def reference(root):
    """Returns the test of the reference pages: each fragment is checked, each command is run."""
    command = [*UNITTEST, "-q", "reference_pages"]
    return Job("docs", "reference pages", command, os.path.join(root, RUNNER), limit=600)


def pages(root):
    """Returns a job for each page that a reader can follow."""
    found = [path for pattern in PAGES for path in sorted(glob.glob(os.path.join(root, pattern)))]
    return [page(root, os.path.relpath(path, root)) for path in found]


def page(root, path):
    """Returns the job that does what a page says."""
    command = ["/usr/bin/python3", "-B", f"{RUNNER}/run_page.py", path]
    return Job("docs", path, command, root, limit=300)


def examples(root):
    """Returns the tests of the examples: what their README says, and what visitors see."""
    jobs = []
    for name in sorted(set(os.listdir(os.path.join(root, "examples"))) - MEMO):
        jobs.append(page(root, f"examples/{name}/README.md"))
        tests = f"examples/{name}/tests/test_{name.replace('-', '_')}.py"
        command = ["scripts/own-network", *UNITTEST, tests]
        jobs.append(Job("docs", f"example {name}", command, root, limit=300))
    return jobs


def site(root):
    """Returns the tests of the documentation site, the last one in a browser."""
    unittest = [*UNITTEST, "discover", "-q", "-s", "site", "-p", "test_*.py"]
    return [
        Job("docs", "the reading of Markdown", unittest, root),
        Job("docs", "the site in a browser", ["scripts/site-test"], root, limit=600),
    ]
