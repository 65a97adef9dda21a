"""What each path answers: the visitor can tell whether an answer is the right one, and whole."""
import hashlib


def text(name, length):
    """Returns the content with this name. Two names have no line in common."""
    line = hashlib.sha256(name.encode()).hexdigest().encode() + b"\n"
    return (line * (length // len(line) + 1))[:length]


def named(name):
    """Returns the content of a name or path that ends with its length, such as `page-700`."""
    name = name.rpartition("/")[2]
    return text(name, int(name.rpartition("-")[2]))
