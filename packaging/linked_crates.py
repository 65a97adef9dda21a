"""Finds the crates whose code is in the program `kirin`."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def metadata():
    """Returns what cargo says about the workspace and of the versions in Cargo.lock."""
    command = [
        os.environ.get("CARGO", "cargo"),
        "metadata",
        "--locked",
        "--format-version=1",
        f"--filter-platform={os.uname().machine}-unknown-linux-gnu",
    ]
    run = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


def is_linked(kind, package):
    """Returns whether a dependency gets into the program.

    A macro runs only in the compiler. Of the dependencies of build scripts, those with sources in C
    get into the program: their names end in -src.
    """
    if any("proc-macro" in target["kind"] for target in package["targets"]):
        return False
    return kind is None or (kind == "build" and package["name"].endswith("-src"))


def linked_crates():
    """Returns the packages from kirin downwards, sorted by name, and the ids each depends on."""
    found = metadata()
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    start = next(id for id, package in packages.items() if package["name"] == "kirin")
    edges, waiting = {}, [start]
    while waiting:
        id = waiting.pop()
        if id in edges:
            continue
        edges[id] = sorted(
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(is_linked(kind["kind"], packages[dependency["pkg"]]) for kind in dependency["dep_kinds"])
        )
        waiting += edges[id]
    crates = sorted((packages[id] for id in edges), key=lambda crate: (crate["name"], crate["version"]))
    return crates, edges


def licence(crate):
    """Returns the licences of a crate as an expression of SPDX. Old crates write `/` for OR."""
    return " OR ".join(part.strip() for part in (crate["license"] or "").split("/"))


def download_address(crate):
    """Returns where the source of a crate is, in the version that is linked."""
    name, version = crate["name"], crate["version"]
    return f"https://crates.io/api/v1/crates/{name}/{version}/download"
