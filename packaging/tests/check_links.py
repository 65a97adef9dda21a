"""Finds links of Markdown files that lead nowhere.

    packaging/tests/check_links.py DIRECTORY
"""
import os
import re
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^(`{3,}).*?^\1$|`[^`\n]*`", re.M | re.S)
HEADING = re.compile(r"^#+ +(.*?) *$", re.M)


def anchors(text):
    """Returns the anchors that GitHub gives the headings of a page."""
    found = {}
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.M | re.S)
    for heading in HEADING.findall(text):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
        count = found[name] = found.get(name, -1) + 1
        if count:
            found[f"{name}-{count}"] = 0
    return set(found)


def dead_links(directory):
    """Returns a line for each link between files below `directory` that leads nowhere."""
    pages = {}
    for place, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".md"):
                with open(os.path.join(place, name), encoding="utf-8") as file:
                    pages[os.path.join(place, name)] = file.read()
    dead = []
    for page, text in sorted(pages.items()):
        for target in LINK.findall(CODE.sub("", text)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            known = not anchor or path not in pages or anchor in anchors(pages[path])
            if not os.path.exists(path) or not known:
                dead.append(f"{os.path.relpath(page, directory)}: {target}")
    return dead


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit("\n".join(dead_links(sys.argv[1])) or None)
