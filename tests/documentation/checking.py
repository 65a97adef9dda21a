"""Checks blocks that no command of their page uses: parts of configurations and programs."""
import json
import os
import shutil
import tomllib

from completion import UnknownSection, complete
from terminal import CommandError

# Where they are checked. Every user may enter it, so `user` can be checked.
DIRECTORY = "/srv/kirin-documentation-check"
CONFIGURATION = "kirin.toml"
# What reads a program without running it, and the file that it reads.
COMPILERS = {
    "perl": ("perl -c", "program.pl"),
    "python": ("python3 -m py_compile", "program.py"),
    "ruby": ("ruby -c", "program.rb"),
}
LUA_SCRIPT = "script.lua"
LUA_CONFIGURATION = f"""
[[listener]]
address = "unix:listener.sock"
[[route]]
path = "/"
try = ["lua:{LUA_SCRIPT}"]
"""
LUA_HANDLER = "return function"
# Languages that can be checked without a file of the page.
LANGUAGES = {*COMPILERS, "json", "lua"}


class Checker:
    """Checks blocks in a directory that the page does not see."""

    def __init__(self, root, terminal):
        """`root` is where the terminal's `/` is."""
        self._root = root
        self._terminal = terminal

    def check_configuration(self, part, section):
        """Completes a part of a configuration, and checks it. Raises `CommandError`."""
        try:
            whole = complete(part, section)
        except (tomllib.TOMLDecodeError, UnknownSection) as error:
            raise CommandError(f"{error}") from error
        self._clear()
        for path in whole.directories:
            os.makedirs(self._path(path), exist_ok=True)
        for path, content in whole.files.items():
            # A key that everybody can read is refused.
            self._write(path, content, mode=0o600)
        for path in whole.programs:
            self._write(path, "#!/bin/sh\n", mode=0o755)
        for chain, key in whole.certificates:
            self._make_certificate(chain, key)
        self._write(CONFIGURATION, whole.text)
        self._run(f"kirin check --config {CONFIGURATION}", whole.text)

    def check_program(self, language, text):
        """Compiles a part of a program, or reads data. Raises `CommandError`."""
        self._clear()
        if language == "json":
            _check_json(text)
        elif language == "lua":
            self._check_lua(text)
        else:
            compiler, name = COMPILERS[language]
            self._write(name, text)
            self._run(f"{compiler} {name}", text)

    def _check_lua(self, text):
        """Starts Kirin with a script. It does not start if the script cannot be loaded."""
        lines = text.splitlines()
        whole = any(line.startswith(LUA_HANDLER) for line in lines)
        self._write(LUA_SCRIPT, text if whole else f"{text}\n{LUA_HANDLER}() end\n")
        self._write(CONFIGURATION, LUA_CONFIGURATION)
        self._terminal.serve(f"kirin serve --config {DIRECTORY}/{CONFIGURATION}", [])
        self._terminal.interrupt()

    def _clear(self):
        shutil.rmtree(self._path(""), ignore_errors=True)
        os.makedirs(self._path(""))

    def _path(self, path):
        """Returns where this process finds a path of a block."""
        return self._root.rstrip("/") + os.path.join(DIRECTORY, path)

    def _write(self, path, content, mode=0o644):
        path = self._path(path)
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            os.chmod(path, mode)

    def _make_certificate(self, chain, key):
        for path in (chain, key):
            os.makedirs(os.path.dirname(self._path(path)), exist_ok=True)
        name = os.path.basename(chain).removesuffix(".pem")
        self._run(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
            f"-subj /CN={name} -addext subjectAltName=DNS:{name} -out {chain} -keyout {key}",
            "",
        )

    def _run(self, command, text):
        status, output = self._terminal.run(f"(cd {DIRECTORY} && {command})")
        if status:
            raise CommandError(f"{command} refuses\n{text}\n{output}")


def _check_json(text):
    """Reads an object, or the inner part of one."""
    try:
        json.loads(text if text.startswith(("{", "[")) else f"{{{text}}}")
    except json.JSONDecodeError as error:
        raise CommandError(f"no JSON: {error}") from error
