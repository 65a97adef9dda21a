"""Copies of a project in a temporary directory, so that each server has its own database."""
import os
import shutil
import subprocess
import tempfile

import software


class Project:
    """A project as it is delivered: its database is filled once."""

    def __init__(self, source):
        self.directory = tempfile.mkdtemp(prefix="project-")
        self.made = self.path("made")
        shutil.copytree(source, self.made, ignore=shutil.ignore_patterns("__pycache__"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *arguments, directory=None):
        """Runs a program of the project with the Python of the tests, such as fill.py."""
        done = subprocess.run(
            [software.python(), *arguments], cwd=directory or self.made, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        if done.returncode:
            raise AssertionError(f"{' '.join(arguments)} failed:\n{done.stdout}")

    def copy(self, name):
        """Copies the project, with the times of its files, which servers send as fields."""
        return shutil.copytree(self.made, self.path(name))

    def remove(self):
        shutil.rmtree(self.directory)
