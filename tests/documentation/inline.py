"""What the sentences and tables of a page say between backquotes: settings and command lines."""
import re
import shlex
import tomllib

BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
CONTINUED = re.compile(r"\\\n *(?:> )?")
SETTING = re.compile(r"^([a-z_0-9]+) = \S")
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z0-9_]+=\S* )*kirin (?=[a-z])")
# Settings of other programs that look like ours.
NOT_OURS = ("location = ", "x = ")


def settings(text):
    """Yields the settings of a page, each with its key. Those with an ellipsis are left out."""
    for code in _inline(text):
        found = SETTING.match(code)
        if found and "…" not in code and not code.startswith(NOT_OURS):
            yield found[1], _one_a_line(code)


def commands(text):
    """Yields the words of each command line of `kirin`, in sentences and in blocks."""
    lines = CONTINUED.sub("", text).splitlines()
    for line in (*_inline(text), *(line.strip() for line in lines)):
        if COMMAND.match(line):
            yield _words(COMMAND.sub("", line))


def _inline(text):
    text = COMMENT.sub("", BLOCK.sub("", text))
    return [" ".join(code.split()) for code in CODE.findall(text)]


def _one_a_line(code):
    """Returns several settings with commas between them, as in a table, a line each."""
    try:
        tomllib.loads(code)
        return code
    except tomllib.TOMLDecodeError:
        pairs = tomllib.loads(f"all = {{ {code} }}")["all"]
        return "\n".join(f"{key} = {_toml(value)}" for key, value in pairs.items())


def _toml(value):
    return str(value) if isinstance(value, int) else f'"{value}"'


def _words(line):
    """Returns the words up to the end of the command: a pipe, a redirection, a comment."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words = []
    try:
        for word in lexer:
            if word[0] in "|&;<>":
                break
            words.append(word)
    except ValueError:
        # A quotation that goes on in the next line of the page.
        pass
    return words
