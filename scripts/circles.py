#!/usr/bin/env python3
"""Counts circles of imports between the files of a crate, and between crates.

    scripts/circles.py [--most N] [--allow CRATE=N]... [--arrows] [DIRECTORY]...

A circle is a set of files of which each one imports each other one, directly or through further
files (a strongly connected component). A reader must know all of its files to understand one.

DIRECTORY is the `src` of a crate; the default is every crate in `crates/`. The script prints each
circle with its files, and with `--arrows` also the imports between them.

    --most N          exit with 1 if a circle has more than N files
    --allow CRATE=N   let the circles of this crate have up to N files

What counts as an import from one file to another:

  - each path of a `use` or `pub use` tree, and each path in the code that starts with `crate::`,
    `self::`, `super::` or a child module;
  - a name that lib.rs or main.rs re-exports counts as an import of the file that it comes from,
    in the file that uses it. So the `pub use` of lib.rs itself is none.

A `mod` line is no import. Test modules, comments and strings do not count.

Without a DIRECTORY the script also checks that the crates do not depend on each other in a circle,
with dependencies for tests and builds included. Cargo refuses the others itself.
"""
import argparse
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The modules that have no name in a path.
ROOTS = (("lib",), ("main",))

# Comments, strings and characters, which hold no imports. A lifetime is not a character.
NOT_CODE = re.compile(
    r"""//[^\n]*
      | /\*.*?\*/
      | b?r(?P<hashes>\#*)".*?"(?P=hashes)
      | [bc]?"(?:\\.|[^"\\])*"
      | b?'(?:\\[^\n]{1,9}?|[^'\\\n])'
    """,
    re.S | re.X,
)
TEST_ITEM = re.compile(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*")
ATTRIBUTE = re.compile(r"#\[[^\]]*\]\s*")
MODULE_FILE = re.compile(r'#\[path = "([^"]*)"\]')
MOD = re.compile(r"\bmod\s+(?:r#)?(\w+)\s*([;{])")
USE = re.compile(r"\b(pub(?:\s*\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:$.])(?:\$)?((?:r#)?\w+(?:\s*::\s*(?:r#)?\w+)+)")


def without_comments(text):
    """Returns `text` without comments and with empty strings, those of `#[path]` excepted."""

    def replacement(found):
        if found.group(0).startswith("/"):
            return " "
        before = text[max(0, found.start() - 7) : found.start()]
        return found.group(0) if before == "path = " else '""'

    return NOT_CODE.sub(replacement, text)


def end_of_item(text, start):
    """Returns where the item that begins at `start` ends: after its `;` or its closing brace."""
    depth = 0
    for i in range(start, len(text)):
        c = text[i]
        if c in "{([":
            depth += 1
        elif c in "})]":
            depth -= 1
            if depth == 0 and c == "}":
                return i + 1
        elif c == ";" and depth == 0:
            return i + 1
    return len(text)


def without_tests(text):
    """Returns `text` without the items that only tests compile, and what those name: modules,
    and files of modules."""
    modules, files = set(), set()
    while m := TEST_ITEM.search(text):
        start = m.end()
        while a := ATTRIBUTE.match(text, start):
            start = a.end()
        end = end_of_item(text, start)
        modules.update(n for n, _ in MOD.findall(text[start:end]))
        files.update(MODULE_FILE.findall(text[m.start() : end]))
        text = text[: m.start()] + text[end:]
    return text, modules, files


def use_tree(tree, prefix=()):
    """Yields each path of a `use` tree as a list of names and the name that it gets here."""
    tree = tree.strip()
    if m := re.match(r"^((?:[\w#]+\s*::\s*)*)\{(.*)\}$", tree, re.S):
        head = tuple(re.findall(r"\w+", m.group(1).replace("r#", "")))
        depth, branch = 0, ""
        for c in m.group(2) + ",":
            depth += (c == "{") - (c == "}")
            if c == "," and depth == 0:
                if branch.strip():
                    yield from use_tree(branch, prefix + head)
                branch = ""
            else:
                branch += c
        return
    path, _, name = tree.partition(" as ")
    path = prefix + tuple(re.findall(r"\w+|\*", path.replace("r#", "")))
    if len(path) > 1 and path[-1] == "self":
        path = path[:-1]
    yield list(path), name.strip() or path[-1]


class Crate:
    """The files of a crate and the imports between them."""

    def __init__(self, directory):
        self.name = os.path.basename(os.path.dirname(os.path.abspath(directory)))
        self.sources = {}  # module, as a tuple of names: (file, text)
        test_modules, test_files = set(), set()
        for folder, _, files in os.walk(directory):
            for path in (os.path.join(folder, f) for f in sorted(files) if f.endswith(".rs")):
                module = tuple(os.path.relpath(path, directory)[:-3].split(os.sep))
                module = module[:-1] if module[-1] == "mod" else module
                with open(path, encoding="utf-8") as f:
                    text, modules, paths = without_tests(without_comments(f.read()))
                parent = () if module in ROOTS else module
                test_modules.update(parent + (name,) for name in modules)
                if os.path.normpath(path) in test_files:
                    paths.update(MODULE_FILE.findall(text))
                test_files.update(os.path.normpath(os.path.join(folder, p)) for p in paths)
                self.sources[module] = (path, text)
        for module, (path, _) in list(self.sources.items()):
            prefixes = {module[:i] for i in range(1, len(module) + 1)}
            if prefixes & test_modules or os.path.normpath(path) in test_files:
                del self.sources[module]
            else:
                self.sources[module] = (os.path.relpath(path, directory), self.sources[module][1])
        self.files = {module: file for module, (file, _) in self.sources.items()}
        self.root_names = self._root_names()
        self.arrows = collections.defaultdict(lambda: collections.defaultdict(set))
        for module, (_, text) in self.sources.items():
            self._read(module, () if module in ROOTS else module, text)

    def _root_names(self):
        """Returns the names that lib.rs or main.rs take out of modules, with their paths."""
        names = {}
        for root in ROOTS:
            if root in self.sources:
                for _, tree in USE.findall(self.sources[root][1]):
                    for path, name in use_tree(tree):
                        path = path[1:] if path[0] in ("crate", "self") else path
                        if path and path[:1] != [name] and (path[0],) in self.sources:
                            names[name] = path
        return names

    def _read(self, module, here, text):
        """Adds the imports of `text`, which stands in the file of `module` in the module `here`."""
        # A module within the file has its own `super` and `self`.
        while m := MOD.search(text):
            end = end_of_item(text, m.start())
            if m.group(2) == "{":
                inner = text[m.end() : end - 1]
                self._read(module, here + (m.group(1),), inner)
            text = text[: m.start()] + text[end:]
        for public, tree in USE.findall(text):
            # Who imports a name that the root re-exports has an arrow to its file.
            if public and module in ROOTS:
                continue
            for path, _ in use_tree(tree):
                self._add(module, here, path)
        for path in PATH.findall(USE.sub("", text)):
            self._add(module, here, re.findall(r"\w+", path.replace("r#", "")))

    def _add(self, module, here, path):
        """Adds the arrow from `module` to the file of this crate that `path` names, if any."""
        if path[0] == "crate":
            here, path = (), path[1:]
        elif path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                here = here[:-1] if path[0] == "super" else here
                path = path[1:]
        elif here + (path[0],) not in self.files:
            return
        full = here + tuple(path)
        if not here and path and path[0] in self.root_names:
            full = tuple(self.root_names[path[0]]) + tuple(path[1:])
        for length in range(len(full), -1, -1):
            target = full[:length] or next((r for r in ROOTS if r in self.files), ())
            if target in self.files:
                if target != module:
                    self.arrows[module][target].add("::".join(full[length:]))
                return

    def circles(self):
        """Returns the circles, the largest first, each as a sorted list of modules."""
        return circles_of({m: set(self.arrows[m]) for m in self.files})


def circles_of(graph):
    """Returns the strongly connected components of more than one node (Tarjan), largest first."""
    sys.setrecursionlimit(10_000)
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in on_stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                on_stack.discard(component[-1])
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def crate_dependencies():
    """Returns each crate of `crates/` with those that its Cargo.toml names, of every kind."""
    crates = os.path.join(ROOT, "crates")
    names = {n for n in os.listdir(crates) if os.path.exists(f"{crates}/{n}/Cargo.toml")}
    graph = {}
    for name in names:
        with open(f"{crates}/{name}/Cargo.toml", encoding="utf-8") as f:
            named = re.findall(r"^(?:\[.*dependencies\.)?\"?([\w-]+)", f.read(), re.M)
        graph[name] = set(named) & names - {name}
    return graph


def main():
    parser = argparse.ArgumentParser(description="Counts circles of imports between files.")
    parser.add_argument("directories", nargs="*", metavar="DIRECTORY")
    parser.add_argument("--most", type=int, metavar="N")
    parser.add_argument("--allow", action="append", default=[], metavar="CRATE=N")
    parser.add_argument("--arrows", action="store_true")
    options = parser.parse_args()
    allowed = {}
    for entry in options.allow:
        crate, _, number = entry.partition("=")
        allowed[crate] = int(number)

    crates = os.path.join(ROOT, "crates")
    sources = options.directories or sorted(
        f"{crates}/{n}/src" for n in os.listdir(crates) if os.path.isdir(f"{crates}/{n}/src")
    )
    failures = []
    for source in sources:
        crate = Crate(source)
        circles = crate.circles()
        largest = len(circles[0]) if circles else 0
        most = options.most
        if most is not None:
            most = max(most, allowed.get(crate.name, 0))
        if most is not None and largest <= most:
            continue
        sizes = [len(circle) for circle in circles] or "none"
        print(f"{crate.name}: {len(crate.files)} files, circles: {sizes}")
        for circle in circles:
            if most is not None and len(circle) <= most:
                continue
            print(f"  circle of {len(circle)} files:")
            for module in circle:
                print(f"    {crate.files[module]}")
                if options.arrows or options.most is not None:
                    for target in sorted(set(crate.arrows[module]) & set(circle)):
                        items = ", ".join(sorted(i for i in crate.arrows[module][target] if i))
                        print(f"      -> {crate.files[target]}{f': {items}' if items else ''}")
        if most is not None:
            failures.append(
                f"{crate.name}: {largest} files import each other in a circle, {most} may"
            )

    if not options.directories:
        for circle in circles_of(crate_dependencies()):
            failures.append(f"these crates depend on each other: {', '.join(circle)}")
    if failures and options.most is not None:
        print("\n".join(failures), file=sys.stderr)
        print(
            "Turn an arrow round: move the type that both files need into a file of its own,\n"
            "pass a value in place of the object that has it, or let the lower file name a trait\n"
            "that the higher one implements. Do not glue files together.",
            file=sys.stderr,
        )
    return 1 if failures and options.most is not None else 0


if __name__ == "__main__":
    sys.exit(main())
