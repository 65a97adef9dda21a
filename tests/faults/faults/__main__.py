"""Runs the program with faults by plan, one seed after the other, and prints what they have shown.

    scripts/faults [--build] [--seeds FIRST-LAST,...] [--visits N] [--jobs N] [--binary FILE]
    scripts/faults [--build] --seed N [--again TIMES] ...

A seed decides which points of the program fail and how, what visitors do, and what the operator
does. --build builds the program first. --seed runs one seed and keeps its directory, with --again
several times. Exits with 1 if a promise was broken, or if 20 seeds have not passed each point.
"""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time

from .trial import Trial, add

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
NAME = "kirin-with-faults"
# So many seeds pass each point at least once.
MANY = 20


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--seeds", default=f"1-{MANY}")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--again", type=int, default=1)
    parser.add_argument("--visits", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2 * len(os.sched_getaffinity(0)))
    parser.add_argument("--binary")
    return parser.parse_args()


def built():
    """Returns the program, which it builds, and the part of the Perl adapter that it needs."""
    subprocess.run([os.path.join(ROOT, "scripts", "build-ring")], check=True)
    command = [os.environ.get("CARGO", "cargo"), "build", "-q", "-p", "kirin", "--features", "faults"]
    subprocess.run([*command, "--bin", NAME], cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
    return os.path.join(target, "debug", NAME)


def known_points():
    """Returns the names of all points in the code."""
    found = set()
    for path in glob.glob(os.path.join(ROOT, "crates/*/src/**/*.rs"), recursive=True):
        if "/kirin-faults/" not in path:
            with open(path, encoding="utf-8") as file:
                found.update(re.findall(r'Point::new\(\s*"([^"]+)"', file.read()))
    return found


def seeds_of(part):
    """Returns the seeds of a range, or the one seed."""
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)


def run_seed(binary, seed, visits, is_kept):
    """Runs one seed, in a process of the pool."""
    return Trial(binary, seed, visits, is_kept).run()


def main():
    options = arguments()
    binary = built() if options.build else options.binary
    binary = os.path.abspath(binary or os.path.join(ROOT, "target", "debug", NAME))
    if not os.access(binary, os.X_OK):
        sys.exit(f"faults: there is no program {binary}: use --build")
    if options.seed is not None:
        seeds = [options.seed] * options.again
    else:
        seeds = [seed for part in options.seeds.split(",") for seed in seeds_of(part)]
    began = time.monotonic()
    points, answered, refused, failed = {}, {}, {}, 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        is_kept = options.seed is not None
        runs = [pool.submit(run_seed, binary, seed, options.visits, is_kept) for seed in seeds]
        for run in concurrent.futures.as_completed(runs):
            outcome = run.result()
            for name, counts in outcome.points.items():
                calls, faults = points.get(name, (0, 0))
                points[name] = (calls + counts[0], faults + counts[1])
            add(answered, outcome.answered)
            add(refused, outcome.refused)
            failed += bool(outcome.wrong)
            print_outcome(outcome, is_kept, options.visits)
    print_table(points, answered, refused)
    missing = known_points() - set(points) if len(set(seeds)) >= MANY else set()
    if missing:
        print(f"no seed has passed {', '.join(sorted(missing))}")
    print(f"{len(seeds)} seeds, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed or missing else 0


def print_outcome(outcome, is_kept, visits):
    """Prints what was wrong, and how to see it again."""
    if outcome.wrong:
        print(f"FAILED: scripts/faults --seed {outcome.seed} --visits {visits}")
        for line in outcome.wrong:
            print(f"    {line}"[:1000])
    if outcome.wrong or is_kept:
        print(f"    the logs are in {outcome.directory}", flush=True)


def print_table(points, answered, refused):
    """Prints how often each point was passed, and how visits ended."""
    print("| point | calls | faults |\n| --- | ---: | ---: |")
    for name, (calls, faults) in sorted(points.items()):
        print(f"| {name} | {calls} | {faults} |")
    print("\n| visits | answered | refused or cut |\n| --- | ---: | ---: |")
    for kind in sorted({*answered, *refused}):
        print(f"| {kind} | {answered.get(kind, 0)} | {refused.get(kind, 0)} |")


if __name__ == "__main__":
    sys.exit(main())
