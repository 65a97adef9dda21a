"""Completes a part of a configuration, so that `kirin check` refuses only what the part says."""
import dataclasses
import os
import tomllib

# What is added for a section that nothing else needs, or whose keys the part consists of.
LEAST = {
    "[[listener]]": 'address = "127.0.0.1:8080"\n',
    "[[app]]": 'name = "web"\nload = "app.psgi"\n',
    "[[upstream]]": 'name = "api"\nservers = ["127.0.0.1:3000"]\n',
    "[[route]]": 'path = "/"\ntry = ["store", "files:public", "app:web"]\n',
}
# Keys whose values name directories.
OF_DIRECTORIES = {"directory", "root", "sendfile", "accel_redirect"}
SECRET = "0123456789abcdef" * 4 + "\n"
# Keys whose values name files, and what such a file may contain.
OF_FILES = {
    "load": "",
    "basic_auth": "bob:$2y$05$abcdefghijklmnopqrstuuGv9vDXqSg0Z1pvJQoWYGVQ3cQIvzVg6\n",
    "redirects": "/old\t/new\n",
    "key_file": SECRET,
    "shared_key_file": SECRET,
    "ticket_key_file": SECRET,
    "origin_password_file": SECRET,
}
# Keys whose values name files of certificates.
OF_CERTIFICATES = {"ca", "client_ca", "origin_ca"}
# Keys of logs, which need the directory of their file.
OF_LOGS = {"access_log", "path"}


class UnknownSection(Exception):
    """A part is said to be in a section for which nothing is known."""


@dataclasses.dataclass
class Completed:
    """A whole configuration, and what must be there for it."""

    text: str
    directories: set = dataclasses.field(default_factory=set)
    # The contents of files by their path.
    files: dict = dataclasses.field(default_factory=dict)
    programs: set = dataclasses.field(default_factory=set)
    # Pairs of a certificate chain and its key.
    certificates: list = dataclasses.field(default_factory=list)


def complete(part, section=None):
    """Returns the configuration that a part belongs to.

    `section` is the one whose keys the part begins with, such as `[[route]]`. Raises
    `tomllib.TOMLDecodeError` and `UnknownSection`.
    """
    if section and section not in LEAST:
        raise UnknownSection(f"`in: {section}`: known are {', '.join(LEAST)}")
    parsed = tomllib.loads(f"{section}\n{part}" if section else part)
    whole = Completed(_in_section(part, section, parsed))
    parsed = tomllib.loads(whole.text)
    if "listener" not in parsed:
        whole.text += _least("[[listener]]")
    # Error pages and the like must have a route that answers them.
    paths = {route.get("path") for route in parsed.get("route", [])}
    if "/" not in paths and "site" not in parsed:
        whole.text += _least("[[route]]")
    parsed = tomllib.loads(whole.text)
    for kind, table in (("app", "app"), ("proxy", "upstream")):
        names = {entry.get("name") for entry in parsed.get(table, [])}
        for name in sorted(_named(parsed, kind) - names):
            least = LEAST[f"[[{table}]]"].split("\n", 1)[1]
            whole.text += f'\n[[{table}]]\nname = "{name}"\n{least}'
    _find_files(whole)
    return whole


def _in_section(part, section, parsed):
    """Returns the part below the head of its section, with the keys that every such section has."""
    if not section:
        return part
    present = parsed[section.strip("[]")][0]
    missing = [line for line in LEAST[section].splitlines() if line.split(" ")[0] not in present]
    return "\n".join([section, *missing, part])


def _least(section):
    return f"\n{section}\n{LEAST[section]}"


def _named(parsed, kind):
    """Returns the names of places of a kind, such as `app`, that the routes name."""
    return {
        value.removeprefix(f"{kind}:")
        for keys, value in _strings(parsed)
        if keys[-1] in ("try", "ask", "to") and value.startswith(f"{kind}:")
    }


def _strings(value, keys=()):
    """Yields all strings, each with the keys that lead to it."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _strings(entry, (*keys, key))
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry, keys)
    elif isinstance(value, str):
        yield keys, value


def _find_files(whole):
    chains = []
    for keys, value in _strings(tomllib.loads(whole.text)):
        kind, _, name = value.partition(":")
        if keys[-1] == "try" and kind == "files":
            whole.directories.add(name)
        elif keys[-1] == "try" and kind == "lua":
            whole.files[name] = "return function() end\n"
        elif keys[-1] == "try" and kind == "cgi":
            (whole.programs if "." in name else whole.directories).add(name)
        elif keys[-1] in OF_LOGS and "access_log" in keys:
            whole.directories.add(os.path.dirname(value) or ".")
        elif OF_DIRECTORIES.intersection(keys):
            whole.directories.add(value)
        # A module of Python has no file of this name.
        elif keys[-1] in OF_FILES and not (keys[-1] == "load" and ":" in value):
            whole.files[value] = OF_FILES[keys[-1]]
        elif keys[-1] in OF_CERTIFICATES:
            whole.certificates.append((value, f"{value}.key"))
        elif keys[-1] == "chain":
            chains.append(value)
        # It follows its chain.
        elif keys[-1] == "key" and chains:
            whole.certificates.append((chains.pop(), value))
