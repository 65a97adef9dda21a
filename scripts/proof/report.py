"""What a run says: failures as they come, and a summary in its last lines."""
import collections
import json
import os

# Lines of the output of a failed test that are printed; the rest is in the file.
OUTPUT_LINES = 120
SLOWEST = 10


class Report:
    """Collects results, and keeps the output of each failed test in a file of `directory`."""

    def __init__(self, directory):
        self.directory = directory
        self.results = []
        self.flaky = []
        os.makedirs(directory, exist_ok=True)
        # What an earlier run has said is no longer true.
        for name in os.listdir(directory):
            if name.endswith(".log") or name == "flaky.txt":
                os.remove(os.path.join(directory, name))

    def add(self, result):
        """Takes a result. The output of a failed one is printed at once."""
        self.results.append(result)
        if result.ok:
            return
        name = "".join(c if c.isalnum() or c in "-_." else "-" for c in result.job.title)
        path = os.path.join(self.directory, f"{name[:150]}.log")
        with open(path, "w", encoding="utf-8") as file:
            file.write(result.output)
        lines = result.output.splitlines()
        print(f"\n--- failed: {result.job.title} ({result.seconds:.1f} s; {path})")
        if len(lines) > OUTPUT_LINES:
            print(f"... {len(lines) - OUTPUT_LINES} lines before")
        print("\n".join(lines[-OUTPUT_LINES:]), flush=True)

    def replace(self, first, second):
        """Takes the result of a second run, alone. A test that passes then is flaky."""
        if second.ok:
            self.results[self.results.index(first)] = second
            self.flaky.extend(f"{first.job.suite} {name}" for name in first.failed)
        with open(os.path.join(self.directory, "flaky.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in self.flaky)

    def failed(self):
        """Returns the results of what failed."""
        return [result for result in self.results if not result.ok]

    def summary(self, builds):
        """Prints what took how long, and what failed. Returns whether everything passed.

        `builds` has the seconds of each step that ran before the tests.
        """
        suites = collections.defaultdict(lambda: [0, 0, 0.0])
        for result in self.results:
            row = suites[result.job.suite]
            row[0] += result.passed
            row[1] += len(result.failed)
            row[2] += result.seconds
        print("\nslowest:")
        for result in sorted(self.results, key=lambda result: -result.seconds)[:SLOWEST]:
            print(f"{result.seconds:7.1f} s  {result.job.title}")
        for result in self.results:
            if result.skipped:
                print(f"skipped: {result.job.title}: {result.skipped}")
            for command in result.left:
                print(f"left behind: {result.job.title}: {command[:120]}")
        print("suites (seconds of all their tests, which run side by side):")
        for step, seconds in builds:
            print(f"{seconds:7.1f} s  {step}")
        for suite, (passed, failed, seconds) in suites.items():
            print(f"{seconds:7.1f} s  {suite}: {passed} passed, {failed} failed")
        for name in self.flaky[:8]:
            print(f"flaky: {name}")
        failures = [f"{r.job.suite} {name}" for r in self.failed() for name in r.failed]
        for name in failures[:10]:
            print(f"failed: {name}")
        if len(failures) > 10:
            print(f"failed: {len(failures) - 10} more, in {self.directory}")
        print(f"{sum(row[0] for row in suites.values())} passed, {len(failures)} failed")
        return not failures


def read_seconds(path):
    """Returns the seconds of each job in an earlier run; nothing if there was none."""
    try:
        with open(path, encoding="utf-8") as file:
            return {name: float(value) for name, value in json.load(file).items()}
    except (OSError, ValueError, AttributeError):
        return {}


def write_seconds(path, results, before):
    """Keeps the seconds of each job for the next run."""
    seconds = {**before, **{r.job.title: round(r.seconds, 2) for r in results}}
    new = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(new, "w", encoding="utf-8") as file:
            json.dump(seconds, file, indent=0, sort_keys=True)
        os.replace(new, path)
    except OSError as error:
        print(f"the seconds of this run are not kept: {error}")
