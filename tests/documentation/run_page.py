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
import sys
import tempfile

import page
from checking import Checker
from expected import matches, missing_words, plain
from terminal import SERVES, CommandError, Terminal

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OWN_NETWORK = os.path.join(ROOT, "scripts", "own-network")
OWN_DIRECTORIES = os.path.join(ROOT, "tests", "documentation", "own-directories")
# Seconds that a command may take.
LIMIT = 60.0
LIMIT_ON_CLEAN_MACHINE = 600.0
CLEAN_DIRECTORY = "/root/site"
BASH = ["bash", "--noprofile", "--norc"]


class Reader:
    """Does what a page says, and notes what the terminal shows."""

    def __init__(self, root, terminal, with_network, transcript):
        """`root` is where the terminal's `/` is. Commands for a clean machine go to the terminal
        `with_network`.
        """
        self._root = root
        self._terminal = terminal
        self.checker = Checker(root, terminal)
        self._with_network = with_network
        self._transcript = transcript

    def follow(self, step):
        """Does one step. Raises `CommandError`."""
        if isinstance(step, page.File):
            self._write(step)
            added = "added to" if step.added else "written to"
            self._note(f"# {added} {step.path}:\n{step.content}")
        elif isinstance(step, page.Fragment):
            self.checker.check_configuration(step.content, step.section)
        elif isinstance(step, page.Code):
            self.checker.check_program(step.language, step.content)
        elif isinstance(step, page.Interrupt):
            self._terminal.interrupt()
            self._note("^C")
        elif isinstance(step, page.Command):
            self._run(step)
        else:
            self._note(f"# skipped: {step.reason}")

    def close(self):
        """Ends everything that goes on."""
        self._terminal.close()
        if self._with_network:
            self._with_network.close()

    def _write(self, step):
        directory = self._terminal.directory()
        path = self._root.rstrip("/") + os.path.join(directory, step.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a" if step.added else "w", encoding="utf-8") as file:
            file.write(("\n" if step.added else "") + step.content)

    def _run(self, step):
        self._note(f"$ {step.text}")
        expected = [] if step.sample else step.expected
        if SERVES.match(step.text) and not step.fails and not step.text.rstrip().endswith("&"):
            self._note(self._terminal.serve(step.text, expected).rstrip("\n"))
            return
        terminal = self._with_network if step.clean else self._terminal
        status, output = terminal.run(step.text)
        self._note(plain(output).rstrip("\n"))
        if (status != 0) != step.fails:
            raise CommandError(f"exit status {status}:\n{output}")
        if step.sample and (missing := missing_words(step.expected, output)):
            raise CommandError(f"it printed\n{output}\nand no line\n{missing}")
        if expected and not matches(expected, output):
            shown = "\n".join(expected)
            raise CommandError(f"it printed\n{output}\nand the page shows\n{shown}")

    def _note(self, text):
        if text:
            print(text, file=self._transcript, flush=True)


def kirin():
    """Returns the path of the built program."""
    path = os.environ.get("KIRIN_BINARY") or os.path.join(ROOT, "target", "debug", "kirin")
    return os.path.realpath(path)


def environment(scratch, directory):
    """Returns the environment of a page: nothing of it is the user's but the tools."""
    programs = os.path.join(scratch, "bin")
    os.mkdir(programs)
    os.symlink(kirin(), os.path.join(programs, "kirin"))
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


def clean_environment(scratch):
    """Returns the environment of a page in a Debian root, as login(1) would set it."""
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "DEBIAN_FRONTEND": "noninteractive",
        "PAGE_SCRATCH": scratch,
    }


def follow_page(steps, reader):
    """Does the steps in their order. Returns whether all went as the page says."""
    try:
        for step in steps:
            try:
                reader.follow(step)
            except CommandError as error:
                print(f"line {step.line}: {getattr(step, 'text', step)}\n{error}", file=sys.stderr)
                return False
    finally:
        reader.close()
    return True


def reader_here(scratch, limit, transcript):
    """Returns a reader that works in an empty directory of this machine."""
    directory = os.path.join(scratch, "site")
    os.mkdir(directory)
    start = [OWN_NETWORK, OWN_DIRECTORIES, "env", "--chdir", directory, *BASH]
    terminal = Terminal(start, scratch, environment(scratch, directory), limit)
    return Reader(terminal.root(), terminal, None, transcript)


def reader_in(root, scratch, limit, transcript):
    """Returns a reader that works in a Debian root, in the directory /root/site."""
    os.makedirs(os.path.join(root, CLEAN_DIRECTORY.lstrip("/")), exist_ok=True)
    enter = ["chroot", root, "env", "--chdir", CLEAN_DIRECTORY, *BASH]
    values = clean_environment(scratch.removeprefix(root))
    terminal = Terminal([OWN_NETWORK, *enter], scratch, values, limit)
    return Reader(root, terminal, Terminal(enter, scratch, values, limit), transcript)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--transcript", help="where to write what the terminal shows")
    parser.add_argument("--root", help="the Debian root in which the page runs")
    parser.add_argument("page")
    arguments = parser.parse_args()
    with open(arguments.page, encoding="utf-8") as file:
        try:
            steps = page.read(file.read(), clean_machine=arguments.root is not None)
        except page.PageError as error:
            sys.exit(f"{arguments.page}: {error}")
    factor = float(os.environ.get("KIRIN_TEST_WAIT_FACTOR") or 1)
    root = os.path.abspath(arguments.root) if arguments.root else None
    scratch = tempfile.mkdtemp(prefix="kirin-page-", dir=os.path.join(root, "tmp") if root else None)
    with open(arguments.transcript or os.devnull, "w", encoding="utf-8") as transcript:
        try:
            if root:
                reader = reader_in(root, scratch, LIMIT_ON_CLEAN_MACHINE * factor, transcript)
            else:
                reader = reader_here(scratch, LIMIT * factor, transcript)
            passed = follow_page(steps, reader)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    if not passed:
        sys.exit(f"{arguments.page} does not do what it shows")
    done = [step for step in steps if not isinstance(step, page.Skipped)]
    print(f"{arguments.page}: {len(done)} steps, {len(steps) - len(done)} skipped")


if __name__ == "__main__":
    main()
