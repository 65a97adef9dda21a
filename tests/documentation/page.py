"""The parts of a documentation page that can be run: files, commands and fragments."""
import dataclasses
import re

from checking import LANGUAGES

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>\S.*)?$")
TITLE = re.compile(r'title="([^"]+)"')
COMMENT = re.compile(
    r"^<!-- (?P<word>run|fails|skip|sample output|one at a time|clean machine|add to|in)"
    r"(?:: (?P<text>.*?))? -->$"
)
# A line that stands for Ctrl-C.
INTERRUPT = "^C"
# Blocks of this language are shown and not run.
SHOWN = "text"
# Lines that a reader would take for commands, so they have to be in a console block.
COMMAND_LINE = re.compile(r"^(?:\$|(?:curl|kirin|make|sudo) [a-z-])")
# A block without fences, which has no language.
INDENTED = re.compile(r"^ {4,}\S")


class PageError(Exception):
    """The page is not as `tests/documentation/README.md` says."""


@dataclasses.dataclass
class Command:
    """A command, and the lines that it must print. No lines: only its exit status counts."""

    line: int
    text: str
    expected: list = dataclasses.field(default_factory=list)
    # Whether its exit status must be another than 0.
    fails: bool = False
    # Whether it needs a clean machine, and its network.
    clean: bool = False
    # Whether the page shows what another machine has printed.
    sample: bool = False


@dataclasses.dataclass
class Interrupt:
    """Ctrl-C in the terminal of the newest server."""

    line: int


@dataclasses.dataclass
class File:
    """A file that the reader is asked to write."""

    line: int
    path: str
    content: str
    # Whether the content is added to what the file has.
    added: bool = False


@dataclasses.dataclass
class Fragment:
    """A part of a configuration that is no file of the page. It must be valid when completed."""

    line: int
    content: str
    # The section whose keys it begins with.
    section: str = None


@dataclasses.dataclass
class Code:
    """A part of a program, or data, that is no file of the page. It is compiled and not run."""

    line: int
    language: str
    content: str


@dataclasses.dataclass
class Skipped:
    """A block that cannot be run here, and why."""

    line: int
    reason: str


def read(text, clean_machine=False):
    """Returns the steps of a page in their order.

    Blocks for a clean machine are steps only with `clean_machine`. Raises `PageError`.
    """
    steps = []
    comments = {}
    before = ""
    lines = iter(enumerate(text.split("\n"), start=1))
    for number, line in lines:
        fence = FENCE.match(line)
        comment = COMMENT.match(line.strip())
        if fence:
            body = _body(lines, number, len(fence["indent"]))
            info = fence["info"] or ""
            if "clean machine" not in comments or clean_machine:
                steps += _steps_of(number, info, body, comments)
            comments = {}
        elif line.strip() == "<!-- run:":
            steps.append(Command(number, _hidden(lines, number)))
        elif comment and comment["word"] == "run":
            steps.append(_hidden_step(number, comment["text"]))
        elif comment:
            comments[comment["word"]] = comment["text"]
        elif line.strip() and comments:
            raise PageError(f"line {number}: a block must follow {', '.join(comments)}")
        elif INDENTED.match(line) and not before:
            raise PageError(f"line {number}: a block stands between ```LANGUAGE and ```")
        before = line.strip()
    return steps


def _hidden_step(number, text):
    return Interrupt(number) if text == INTERRUPT else Command(number, text)


def _hidden(lines, start):
    """Returns the commands of a comment of several lines, and takes them from `lines`."""
    commands = []
    for _, line in lines:
        if line.strip() == "-->":
            return "\n".join(commands)
        commands.append(line)
    raise PageError(f"line {start}: the comment has no end")


def _body(lines, start, indent):
    """Returns the lines of a block, and takes them from `lines`."""
    body = []
    for _, line in lines:
        if line.strip() == "```":
            return body
        body.append(line[indent:])
    raise PageError(f"line {start}: the block has no end")


def _steps_of(number, info, body, comments):
    language = info.split(" ")[0]
    title = TITLE.search(info)
    content = "".join(f"{line}\n" for line in body)
    if "skip" in comments:
        if not comments["skip"]:
            raise PageError(f"line {number}: say why the block is skipped: <!-- skip: REASON -->")
        return [Skipped(number, comments["skip"])]
    if title:
        return [File(number, title[1], content)]
    if "add to" in comments:
        return [File(number, comments["add to"], content, added=True)]
    if language == "console":
        steps = _commands(number + 1, body)
        if "fails" in comments:
            _commands_of(steps)[-1].fails = True
        for command in _commands_of(steps):
            command.clean = "clean machine" in comments
            command.sample = "sample output" in comments
        if "one at a time" in comments:
            return [step for command in steps for step in (command, Interrupt(command.line))]
        return steps
    if language == "toml":
        return [Fragment(number, content, comments.get("in"))]
    if language in LANGUAGES:
        return [Code(number, language, content)]
    if language == SHOWN:
        _refuse_commands(number + 1, body)
        return []
    raise PageError(
        f"line {number}: a block of \"{language}\" needs title=\"FILE\" if it is a file; "
        "commands are in a console block, and what is only shown in a text block"
    )


def _refuse_commands(start, body):
    for at, line in enumerate(body, start=start):
        if COMMAND_LINE.match(line):
            raise PageError(f"line {at}: commands are in a console block, which is run")


def _commands_of(steps):
    return [step for step in steps if isinstance(step, Command)]


def _commands(number, body):
    """Returns the commands of a console block, each with its output."""
    steps = []
    continued = False
    for at, line in enumerate(body, start=number):
        if line.startswith("$ "):
            steps.append(Command(at, line[2:]))
            continued = True
        elif continued and line.startswith("> "):
            steps[-1].text += "\n" + line[2:]
        elif line == INTERRUPT:
            steps.append(Interrupt(at))
            continued = False
        elif steps and isinstance(steps[-1], Command):
            steps[-1].expected.append(line.rstrip())
            continued = False
        else:
            raise PageError(f"line {at}: a console block begins with a command: \"$ COMMAND\"")
    for command in _commands_of(steps):
        while command.expected and not command.expected[-1]:
            command.expected.pop()
    return steps
