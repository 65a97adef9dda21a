"""Output as a page shows it: `…` stands for what differs from run to run."""
import re

ELLIPSIS = "…"
# Colours, and other control sequences of a terminal (ECMA-48 section 5.4).
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def plain(output):
    """Returns the output without control sequences and spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in CONTROL.sub("", output).splitlines())


def matches(expected, output):
    """Returns whether `output` is what the lines of `expected` say, from its begin to its end."""
    return re.fullmatch(_pattern(expected), plain(output)) is not None


def appears(expected, output):
    """Returns whether somewhere in `output` are lines as `expected` says."""
    return re.search("^" + _pattern(expected), plain(output), re.MULTILINE) is not None


def missing_words(sample, output):
    """Returns a line of words that a sample has and `output` has not, or None.

    Lines with figures differ between machines, and so do the widths of columns.
    """
    printed = {" ".join(line.split()) for line in plain(output).splitlines()}
    for line in sample:
        words = " ".join(line.split())
        if words not in (*printed, "", ELLIPSIS) and not any(map(str.isdigit, words)):
            return words
    return None


def _pattern(expected):
    """Returns the regular expression of the lines. A line `…` is any number of lines."""
    parts = []
    for line in expected:
        if line.strip() == ELLIPSIS:
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append("[^\n]*?".join(map(re.escape, line.split(ELLIPSIS))) + r"\n")
    return "".join(parts)
