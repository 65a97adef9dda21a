"""Command lines of `kirin`, compared with what the program's help says."""
import functools
import re
import subprocess

COMMAND_OF_HELP = re.compile(r"^  ([a-z-]+)(?: |$)", re.MULTILINE)
OPTION_OF_HELP = re.compile(r"(?<![\w-])--?[A-Za-z][A-Za-z-]*")
# Commands that Kirin itself starts.
INTERNAL = {"launch", "serve-loaded"}
# It has memcached's options, and its own help.
MEMCACHED = "memcached"


class UnknownCommandLine(Exception):
    """The help of Kirin has no such command or option."""


class Help:
    """What `kirin COMMAND --help` says."""

    def __init__(self, kirin):
        self._kirin = kirin
        self._of = functools.lru_cache(maxsize=None)(self._read)

    def check(self, words):
        """Raises `UnknownCommandLine` if a command or an option of a command line is unknown."""
        commands = self._commands(words)
        if commands[0] in INTERNAL:
            return
        known = OPTION_OF_HELP.findall(self._of(commands))
        for word in words[len(commands) :]:
            option = OPTION_OF_HELP.match(word)
            if option and option[0] not in known:
                raise UnknownCommandLine(f"`kirin {' '.join(words)}`: there is no {option[0]}")

    def _commands(self, words):
        """Returns the command that the words begin with, and the commands within it."""
        commands = ()
        while names := COMMAND_OF_HELP.findall(_commands_section(self._of(commands))):
            word = words[len(commands)] if len(words) > len(commands) else None
            if word not in (*names, *INTERNAL):
                if commands and not word:
                    break
                raise UnknownCommandLine(f"`kirin {' '.join(words)}`: there is no {word}")
            commands += (word,)
            if word in INTERNAL:
                break
        return commands

    def _read(self, commands):
        option = "-h" if commands == (MEMCACHED,) else "--help"
        done = subprocess.run(
            [self._kirin, *commands, option], check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout + done.stderr


def _commands_section(text):
    """Returns the list of commands of a help, or nothing."""
    _, _, rest = text.partition("\nCommands:\n")
    return rest.partition("\n\n")[0]
