#!/usr/bin/env python3
"""Runs what a page of the documentation tells its reader to do.

    tests/documentation/run_page.py [--transcript FILE] [--root DIRECTORY] PAGE.md

The page runs in an empty directory and in a network of its own, with the built program
($KIRIN_BINARY, or target/debug/kirin) as `kirin`. With --root it runs in that Debian root, as
root's home would be, with the program that is installed there, and with the blocks for a clean
machine, which have the network. tests/documentation/README.md says how a page is written.
KIRIN_TEST_WAIT_FACTOR multiplies the limits of time. Exits with 1 at the first difference.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

import page
from expected import matches, plain
from terminal import SERVES, CommandError, Terminal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OWN_NETWORK = os.path.join(ROOT, "scripts", "own-network")
# Seconds that a command may take.
LIMIT = 60.0
LIMIT_ON_CLEAN_MACHINE = 600.0
# What each configuration needs, and few fragments show.
LISTENER = '\n[[listener]]\naddress = "127.0.0.1:8080"\n'
BASH = ["bash", "--noprofile", "--norc"]


class Reader:
    """Does what a page says, and notes what the terminal shows."""

    def __init__(self, terminal, transcript):
        self._terminal = terminal
        self._transcript = transcript

    def follow(self, step):
        """Does one step. Raises `CommandError`."""
        if isinstance(step, page.File):
            self._write(step)
        elif isinstance(step, page.Fragment):
            self._check(step)
        elif isinstance(step, page.Interrupt):
            self._terminal.interrupt()
            self._note("^C")
        elif isinstance(step, page.Command):
            self._run(step)
        else:
            self._note(f"# skipped: {step.reason}")

    def _write(self, step):
        path = os.path.join(self._terminal.directory(), step.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a" if step.added else "w", encoding="utf-8") as file:
            file.write(("\n" if step.added else "") + step.content)
        self._note(f"# {step.path} is written")

    def _check(self, step):
        path = "fragment.toml"
        content = step.content if "[[listener]]" in step.content else step.content + LISTENER
        self._write(page.File(step.line, path, content))
        status, output = self._terminal.run(f"kirin check --config {path}; s=$?; rm {path}; (exit $s)")
        if status:
            raise CommandError(f"kirin check refuses the fragment:\n{output}")

    def _run(self, step):
        self._note(f"$ {step.text}")
        if SERVES.match(step.text) and not step.fails and not step.text.rstrip().endswith("&"):
            self._terminal.serve(step.text, step.expected)
            self._note("(it goes on)")
            return
        status, output = self._terminal.run(step.text)
        self._note(plain(output).rstrip("\n"))
        if (status != 0) != step.fails:
            raise CommandError(f"exit status {status}:\n{output}")
        if step.expected and not matches(step.expected, output):
            shown = "\n".join(step.expected)
            raise CommandError(f"it printed\n{output}\nand the page shows\n{shown}")

    def _note(self, text):
        if text:
            print(text, file=self._transcript, flush=True)


def environment(scratch, directory):
    """Returns the environment of a page: nothing of it is the user's but the tools."""
    programs = os.path.join(scratch, "bin")
    os.mkdir(programs)
    kirin = os.environ.get("KIRIN_BINARY") or os.path.join(ROOT, "target", "debug", "kirin")
    os.symlink(os.path.realpath(kirin), os.path.join(programs, "kirin"))
    admin = os.path.join(scratch, "admin")
    os.mkdir(admin, 0o700)
    # Debian's packages are for Debian's own interpreters, which need not be the first in PATH.
    path = f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin:{os.environ.get('PATH', os.defpath)}"
    return {
        "PATH": path,
        "HOME": directory,
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "KIRIN_SOURCE": ROOT,
        "KIRIN_ADMIN_DIRECTORY": admin,
        "PERL5LIB": os.path.join(ROOT, "adapters", "perl", "lib"),
        "PAGE_SCRATCH": scratch,
    }


def clean_environment():
    """Returns the environment of a page in a Debian root, as login(1) would set it."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "DEBIAN_FRONTEND": "noninteractive",
        "PAGE_SCRATCH": "/tmp",
    }


def follow_page(steps, make_reader):
    """Does the steps in their order. Returns whether all went as the page says."""
    reader, terminal = make_reader()
    try:
        for step in steps:
            try:
                reader.follow(step)
            except CommandError as error:
                print(f"line {step.line}: {getattr(step, 'text', step)}\n{error}", file=sys.stderr)
                return False
    finally:
        terminal.close()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--transcript", help="where to write what the terminal shows")
    parser.add_argument("page")
    arguments = parser.parse_args()
    with open(arguments.page, encoding="utf-8") as file:
        try:
            steps = page.read(file.read())
        except page.PageError as error:
            sys.exit(f"{arguments.page}: {error}")
    factor = float(os.environ.get("KIRIN_TEST_WAIT_FACTOR") or 1)
    scratch = tempfile.mkdtemp(prefix="kirin-page-")
    directory = os.path.join(scratch, "site")
    os.mkdir(directory)
    transcript = open(arguments.transcript or os.devnull, "w", encoding="utf-8")

    def make_reader():
        start = [OWN_NETWORK, "env", "--chdir", directory, *BASH]
        terminal = Terminal(start, scratch, environment(scratch, directory), LIMIT * factor)
        return Reader(terminal, transcript), terminal

    try:
        passed = follow_page(steps, make_reader)
    finally:
        transcript.close()
        shutil.rmtree(scratch, ignore_errors=True)
    if not passed:
        sys.exit(f"{arguments.page} does not do what it shows")
    done = [step for step in steps if not isinstance(step, page.Skipped)]
    print(f"{arguments.page}: {len(done)} steps, {len(steps) - len(done)} skipped")


if __name__ == "__main__":
    main()
