"""The test programs that cargo builds, and the jobs that are in them."""
import json
import os
import re
import subprocess

from .job import Job

# A crate or a program with tests that take longer than the usual limit, in seconds.
LIMITS = {"kirin-workers/suite kills::": 600.0, "kirin/operating debian_package::": 600.0}
UNIT_LIMIT = 300.0


class BuildError(Exception):
    """Cargo has failed, and said why."""


class Program:
    """An executable with tests: `name` is `CRATE` for unit tests, `CRATE/PROGRAM` for others."""

    def __init__(self, name, executable, directory, is_unit):
        self.name = name
        self.executable = executable
        self.directory = directory
        self.is_unit = is_unit

    def tests(self):
        """Returns the names of its tests."""
        listed = subprocess.run(
            [self.executable, "--list", "--format", "terse"],
            cwd=self.directory,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return re.findall(r"^(\S+): test$", listed, re.M)

    def unit_job(self, suite, threads):
        """Returns one job with all tests."""
        command = [self.executable, f"--test-threads={threads}"]
        return Job(suite, self.name, command, self.directory, "program", limit=UNIT_LIMIT)

    def single_job(self, suite, test, environment=None):
        """Returns a job with one test."""
        name = f"{self.name} {test}"
        limits = [seconds for start, seconds in LIMITS.items() if name.startswith(start)]
        command = [self.executable, "--exact", test, "--test-threads=1"]
        limit = {"limit": limits[0]} if limits else {}
        return Job(suite, name, command, self.directory, "one", environment or {}, **limit)


def build(cargo, root, *selection):
    """Builds all test programs and returns them with the path of the program `kirin`."""
    command = [cargo, "test", "--no-run", "--message-format=json-render-diagnostics"]
    process = subprocess.run([*command, *selection], cwd=root, stdout=subprocess.PIPE, text=True)
    if process.returncode != 0:
        raise BuildError("cargo cannot build the tests")
    programs, kirin = [], None
    for line in process.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message.get("executable"):
            continue
        target = message["target"]
        directory = os.path.dirname(message["manifest_path"])
        if not message["profile"]["test"]:
            if target["name"] == "kirin":
                kirin = message["executable"]
            continue
        # PATH#NAME@VERSION, or PATH#VERSION where the directory has the name.
        name = message["package_id"].rpartition("#")[2].split("@")
        package = name[0] if len(name) == 2 else os.path.basename(directory)
        is_unit = "test" not in target["kind"]
        program = target["name"] if target["name"].replace("_", "-") != package else ""
        title = f"{package}/{program}" if program else package
        programs.append(Program(title, message["executable"], directory, is_unit))
    return programs, kirin
