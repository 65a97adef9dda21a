"""CommonMark: the parts of libcmark that the site uses.

Debian has no package for Python with this library, so this module calls it with ctypes. The
package libcommonmark-perl, for example, brings it.
"""
import contextlib
import ctypes
import ctypes.util

EVENT_DONE = 1
EVENT_ENTER = 2

DEFAULT_OPTIONS = 0

# As cmark_node_type has it. The types of found nodes come by name (`Node.type`).
PARAGRAPH = 8
TEXT = 11
LINK = 19


def _load():
    name = ctypes.util.find_library("cmark")
    if name is None:
        raise ImportError("libcmark is missing: apt-get install libcmark-dev")
    library = ctypes.CDLL(name)
    node, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for function, result, *arguments in (
        ("parse_document", node, text, ctypes.c_size_t, number),
        ("render_html", ctypes.c_void_p, node, number),
        ("iter_new", ctypes.c_void_p, node),
        ("iter_next", number, ctypes.c_void_p),
        ("iter_get_node", node, ctypes.c_void_p),
        ("iter_free", None, ctypes.c_void_p),
        ("node_new", node, number),
        ("node_free", None, node),
        ("node_get_type_string", text, node),
        ("node_first_child", node, node),
        ("node_next", node, node),
        ("node_parent", node, node),
        ("node_get_literal", text, node),
        ("node_set_literal", number, node, text),
        ("node_get_url", text, node),
        ("node_set_url", number, node, text),
        ("node_get_heading_level", number, node),
        ("node_set_heading_level", number, node, number),
        ("node_append_child", number, node, node),
        ("node_insert_before", number, node, node),
    ):
        declared = getattr(library, f"cmark_{function}")
        declared.restype, declared.argtypes = result, arguments
    return library


_cmark = _load()
_free = ctypes.CDLL(None).free
_free.argtypes = [ctypes.c_void_p]


@contextlib.contextmanager
def document(markdown):
    """Opens a block with the tree of a text. Its nodes exist until the end of the block."""
    data = markdown.encode("utf-8")
    root = Node(_cmark.cmark_parse_document(data, len(data), DEFAULT_OPTIONS))
    try:
        yield root
    finally:
        root.remove()


def new_text(literal):
    """Creates a text. It belongs to no tree yet."""
    text = Node(_cmark.cmark_node_new(TEXT))
    _cmark.cmark_node_set_literal(text.pointer, literal.encode("utf-8"))
    return text


def new_paragraph(literal):
    """Creates a paragraph of one text. It belongs to no tree yet."""
    paragraph = Node(_cmark.cmark_node_new(PARAGRAPH))
    paragraph.append(new_text(literal))
    return paragraph


def new_link(url):
    """Creates a link without words. It belongs to no tree yet."""
    link = Node(_cmark.cmark_node_new(LINK))
    _cmark.cmark_node_set_url(link.pointer, url.encode("utf-8"))
    return link


class Node:
    """A node of a tree."""

    def __init__(self, pointer):
        self.pointer = pointer

    @property
    def type(self):
        """The name of the type: `heading`, `html_block`, `link` …"""
        return _cmark.cmark_node_get_type_string(self.pointer).decode("ascii")

    @property
    def literal(self):
        """The text of a node that has text itself, otherwise the empty string."""
        return (_cmark.cmark_node_get_literal(self.pointer) or b"").decode("utf-8")

    @property
    def url(self):
        """The URL of a link or an image."""
        return (_cmark.cmark_node_get_url(self.pointer) or b"").decode("utf-8")

    @property
    def heading_level(self):
        """The level of a heading, 1 to 6."""
        return _cmark.cmark_node_get_heading_level(self.pointer)

    @heading_level.setter
    def heading_level(self, level):
        _cmark.cmark_node_set_heading_level(self.pointer, level)

    @property
    def first_child(self):
        """The first child, or None."""
        return _node(_cmark.cmark_node_first_child(self.pointer))

    @property
    def next(self):
        """The next node with the same parent, or None."""
        return _node(_cmark.cmark_node_next(self.pointer))

    @property
    def parent(self):
        """The parent, or None."""
        return _node(_cmark.cmark_node_parent(self.pointer))

    def nodes(self):
        """Returns this node and all below it, in the order of the text.

        The list is complete before it is returned, so that the tree may then be changed.
        """
        found = []
        iterator = _cmark.cmark_iter_new(self.pointer)
        while (event := _cmark.cmark_iter_next(iterator)) != EVENT_DONE:
            if event == EVENT_ENTER:
                found.append(Node(_cmark.cmark_iter_get_node(iterator)))
        _cmark.cmark_iter_free(iterator)
        return found

    def append(self, child):
        """Moves a node to the end of this one's children."""
        _check(_cmark.cmark_node_append_child(self.pointer, child.pointer))

    def insert_before(self, sibling):
        """Moves a node to the place before this one."""
        _check(_cmark.cmark_node_insert_before(self.pointer, sibling.pointer))

    def replace_by(self, other):
        """Puts a node in the place of this one, which is removed."""
        self.insert_before(other)
        self.remove()

    def remove(self):
        """Removes the node, with all below it. It may not be used any more."""
        _cmark.cmark_node_free(self.pointer)

    def html(self):
        """Returns the HTML of the tree."""
        pointer = _cmark.cmark_render_html(self.pointer, DEFAULT_OPTIONS)
        try:
            return ctypes.string_at(pointer).decode("utf-8")
        finally:
            _free(pointer)


def _check(done):
    if not done:
        raise ValueError("CommonMark allows no such node at this place")


def _node(pointer):
    return None if pointer is None else Node(pointer)
