"""A stranger's Markdown as HTML that is safe to show.

libcmark is a parser of the written CommonMark grammar. So the code can decide on the tree what is
safe, before there is any HTML. libcmark is also linear, and in C: it takes 12 ms for 48 KB of
"*a_ ", on which parsers made of substitutions work for minutes.
"""
import re

from memo import cmark

TITLE_LONGEST = 80
EXCERPT_LONGEST = 140

SAFE_URL = re.compile(r"https?://|mailto:|/|#|\?", re.IGNORECASE)


def html(markdown):
    """Returns a memo as safe HTML, without the title that the page shows above it."""
    with cmark.document(markdown) as document:
        first = document.first_child
        if first and _is_just_the_title(first):
            first.remove()
        _make_safe(document)
        # The renderer writes every tag itself and escapes all text. So this replaces only in its
        # own links.
        return document.html().replace("<a href=", '<a rel="nofollow noopener ugc" href=')


def title_and_excerpt(markdown):
    """Returns the values for lists: the first line as plain text, and the start of the rest."""
    with cmark.document(markdown) as document:
        block = document.first_child
        title, _, rest = (_text_of(block) if block else "").lstrip().partition("\n")
        while len(rest) < EXCERPT_LONGEST * 2 and block and (block := block.next):
            rest += " " + _text_of(block)
    return _shortened(title, TITLE_LONGEST) or "Untitled", _shortened(rest, EXCERPT_LONGEST)


def _is_just_the_title(block):
    if block.type not in ("heading", "paragraph"):
        return False
    text = _text_of(block).strip()
    return 0 < len(text) <= TITLE_LONGEST and "\n" not in text and not _has_link(block)


def _has_link(block):
    return any(node.type in ("link", "image") for node in block.nodes())


def _text_of(block):
    return "".join(_own_text(node) for node in block.nodes())


def _own_text(node):
    kind = node.type
    if kind in ("softbreak", "linebreak"):
        return "\n"
    if kind == "item":
        return " · "
    if kind == "paragraph":
        return " "
    return node.literal


def _shortened(text, longest):
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\A[ ·]+| \Z", "", text)
    text = re.sub(r"(?<=[.:!?]) · ", " ", text)
    if len(text) <= longest:
        return text
    return re.sub(r"\s+\S{0,15}\Z", "", text[:longest - 1]) + "…"


def _make_safe(document):
    """Makes the tree safe.

    Raw HTML becomes text that shows it. A link to anything but the web, mail or this site becomes
    its words. A picture becomes a link to it; otherwise a memo could make every reader's browser
    send requests to any server. Headings go one level down, below the page's own.
    """
    for node in document.nodes():
        kind = node.type
        if kind == "html_block":
            node.replace_by(cmark.new_paragraph(node.literal))
        elif kind == "html_inline":
            node.replace_by(cmark.new_text(node.literal))
        elif kind in ("link", "image"):
            _make_link_safe(node, kind)
        elif kind == "heading":
            node.heading_level = min(node.heading_level + 1, 6)


def _make_link_safe(node, kind):
    url = node.url
    is_web = SAFE_URL.match(url)
    if kind == "link" and is_web:
        return
    # Links do not nest. A picture in a link becomes only its words.
    link = cmark.new_link(url) if is_web and not _is_in_link(node) else None
    if link:
        node.insert_before(link)
        if not node.first_child:
            link.append(cmark.new_text(url))
    while child := node.first_child:
        if link:
            link.append(child)
        else:
            node.insert_before(child)
    node.remove()


def _is_in_link(node):
    while node := node.parent:
        if node.type == "link":
            return True
    return False
