"""Runs seeds side by side and prints what they have shown.

    scripts/faults [--seeds FIRST-LAST | --seed N [--again TIMES]] [--visits N] [--jobs N] [--binary FILE]

A seed decides which points of the program fail and how, what visitors do, and what the operator
does. --seed runs one seed and keeps its directory, with --again several times. Exits with 1 if a
promise was broken.
"""
import argparse
import concurrent.futures
import os
import sys
import time

from .trial import Trial, add

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BINARY = os.path.join(ROOT, "target", "debug", "kirin-with-faults")


def arguments():
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seeds", default="1-20")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--again", type=int, default=1)
    parser.add_argument("--visits", type=int, default=150)
    parser.add_argument("--jobs", type=int, default=2 * len(os.sched_getaffinity(0)))
    parser.add_argument("--binary", default=BINARY)
    return parser.parse_args()


def run_seed(binary, seed, visits):
    """Runs one seed in a process of its own."""
    return Trial(binary, seed, visits).run()


def main():
    options = arguments()
    if options.seed is not None:
        seeds = [options.seed] * options.again
    else:
        first, _, last = options.seeds.partition("-")
        seeds = list(range(int(first), int(last or first) + 1))
    began = time.monotonic()
    points, answered, refused, failed = {}, {}, {}, []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run_seed, options.binary, seed, options.visits) for seed in seeds]
        for run in concurrent.futures.as_completed(runs):
            outcome = run.result()
            for name, counts in outcome.points.items():
                calls, faults = points.get(name, (0, 0))
                points[name] = (calls + counts[0], faults + counts[1])
            add(answered, outcome.answered)
            add(refused, outcome.refused)
            if outcome.wrong:
                failed.append(outcome)
                print(f"seed {outcome.seed}, {outcome.directory}:", flush=True)
                for line in outcome.wrong:
                    print(f"    {line}"[:1000], flush=True)
    print_table(points, answered, refused)
    print(f"{len(seeds)} seeds, {len(failed)} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


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
