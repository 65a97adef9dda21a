"""Rewrites GitHub's Markdown so that Python-Markdown, which MkDocs uses, reads it alike.

GitHub nests by the column in which the text of a list item starts, and Python-Markdown by four
spaces. GitHub lets a list or a code block follow a paragraph at once, and Python-Markdown wants an
empty line between them. Comments are left out: they are for the program that tests the pages.
"""
import re

INDENT = 4
ITEM = re.compile(r"(?P<mark>[-*+]|\d{1,9}[.)]) +(?=\S)")
# Headings, rows of tables and quotations.
OTHER = ("#", "|", ">")
# Two lines of Japanese: the end of the first, a line break, and the start of the second.
JAPANESE = re.compile(r"([\u3000-\u9fff\uff00-\uffef]\n[\u3000-\u9fff\uff00-\uffef]|[。、：]\n)")
CODE = re.compile(r"(`+).+?\1")
FENCE = re.compile(r"`{3,}|~{3,}")


def convert(text):
    """Returns the text of a page, rewritten."""
    return "\n".join(Page(text.splitlines()).lines).rstrip("\n") + "\n"


class Page:
    """A page while it is rewritten, one line after the other."""

    def __init__(self, lines):
        self.lines = []
        # The columns in which the texts of the open list items start.
        self.columns = []
        self.fence = None
        self.in_comment = False
        # How many items were open at the last empty line.
        self.block_depth = 0
        # Whether the previous line belongs to a paragraph, and whether that starts a list item.
        self.in_paragraph = self.in_item = False
        for line in lines:
            self.add(line)

    def add(self, line):
        indent = len(line) - len(line.lstrip(" "))
        text = line[indent:]
        if self.in_comment:
            self.in_comment = "-->" not in text
        elif self.fence:
            self.add_code(line, text)
        elif not text:
            self.add_empty_line()
        else:
            self.add_text(indent, text)

    def add_code(self, line, text):
        mark, column = self.fence
        # A line may be indented less than its fence.
        self.emit(re.sub(rf"^ {{0,{column}}}", "", line))
        if re.fullmatch(rf"{re.escape(mark[0])}{{{len(mark)},}}\s*", text):
            self.fence = None
            self.add_empty_line()

    def add_empty_line(self):
        if self.lines and self.lines[-1]:
            self.lines.append("")
        self.in_paragraph = self.in_item = False

    def add_text(self, indent, text):
        item, fence = self.item(indent, text), FENCE.match(text)
        comment = text.startswith("<!--")
        other = item or fence or comment or text.startswith(OTHER)
        goes_on = self.in_paragraph and not other
        while self.columns and indent < self.columns[-1] and not goes_on:
            self.columns.pop()
        inside = indent - (self.columns[-1] if self.columns else 0)
        if inside >= INDENT and not self.in_paragraph:
            self.emit(" " * inside + text)
        elif comment:
            self.in_comment = "-->" not in text
            self.add_empty_line()
        elif fence:
            self.add_empty_line()
            self.emit(text)
            self.fence = fence[0], indent
        elif item:
            self.add_item(indent, text, item)
        elif text.startswith("|"):
            # GitHub needs `\|` for a `|` in the code of a table, and Python-Markdown does not.
            self.emit(CODE.sub(lambda code: code[0].replace("\\|", "|"), text))
        elif goes_on and JAPANESE.search(f"{self.lines[-1]}\n{text}"):
            # A line break is a space, and Japanese has none.
            self.lines[-1] += text
        else:
            self.emit(text)
            self.in_paragraph = not text.startswith(OTHER)

    def item(self, indent, text):
        """Returns the match of a line that starts a list item, or None."""
        item = ITEM.match(text)
        in_text = self.in_paragraph and indent >= (self.columns[-1] if self.columns else 0)
        if item and in_text and item["mark"][:-1] not in ("", "1"):
            # A sentence that ends with a number, wrapped before it.
            return None
        return item

    def add_item(self, indent, text, item):
        after_paragraph = self.in_paragraph and not self.in_item
        if after_paragraph or len(self.columns) < self.block_depth:
            self.add_empty_line()
        self.emit(item["mark"].replace(")", ".") + " " + text[item.end():])
        self.columns.append(indent + item.end())
        self.in_paragraph = self.in_item = True

    def emit(self, text):
        if not self.lines or not self.lines[-1]:
            self.block_depth = len(self.columns)
        self.lines.append((" " * INDENT * len(self.columns) + text).rstrip())
