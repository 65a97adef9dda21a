"""What MkDocs lacks: pages from outside docs/, GitHub's Markdown, and pages in Japanese."""
import glob
import os
import posixpath
import re
from urllib.parse import unquote, urlsplit, urlunsplit

from github_markdown import convert
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from mkdocs.structure.files import File
from pygments.lexers.shell import BashSessionLexer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Pages of the site that are not in docs/, and their names in the site. A `*` stands for any name.
OUTSIDE = {
    "README.md": "project/readme.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "examples/*/README.md": "examples/*.md",
    "bench/README.md": "bench/index.md",
    "bench/score/README.md": "bench/score.md",
    "bench/results/README.md": "bench/results/index.md",
    "bench/results/*": "bench/results/*",
}
# Files of these patterns that are part of the site.
SUFFIXES = (".md", ".svg", ".png")


def outside():
    """Returns the names in the site of all files from outside docs/, by their paths."""
    names = {}
    for pattern, name in OUTSIDE.items():
        before, _, after = pattern.partition("*")
        for path in sorted(glob.glob(pattern, root_dir=ROOT)):
            if path.endswith(SUFFIXES):
                star = path[len(before):len(path) - len(after)]
                names.setdefault(path, name.replace("*", star))
    return names


# Pygments takes `#` and `%` for prompts, too, which are output in our pages. A command goes on in
# lines that begin with `> `, as tests/documentation/run_page.py reads them.
BashSessionLexer._ps1rgx = re.compile(r"^(\$ )(.*\n?)")
BashSessionLexer._bare_continuation = True

NAMES = outside()
PATHS = {name: path for path, name in NAMES.items()}


def path_of(name):
    """Returns the path in the repository of a file of the site."""
    return PATHS.get(name) or posixpath.join("docs", name)


def name_of(path):
    """Returns the name in the site of a path in the repository, or None."""
    for candidate in (path, posixpath.join(path, "README.md"), posixpath.join(path, "index.md")):
        if os.path.isfile(os.path.join(ROOT, candidate)):
            if candidate.startswith("docs/"):
                return candidate[len("docs/"):]
            if candidate in NAMES:
                return NAMES[candidate]
    return None


class Links(Treeprocessor):
    """Makes links between files of the repository links between pages of the site.

    A link to a file that is no page becomes the name of the file: the repository has no public
    address yet. MkDocs checks the other links.
    """

    page = None

    def run(self, root):
        for element in root.iter():
            if element.tag == "a":
                self.rewrite(element, "href")
            elif element.tag == "img":
                self.rewrite(element, "src")

    def rewrite(self, element, key):
        link = urlsplit(element.get(key, ""))
        if link.scheme or link.netloc or not link.path or link.path.startswith("/"):
            return
        here = self.page.file.src_uri
        path = posixpath.normpath(
            posixpath.join(posixpath.dirname(path_of(here)), unquote(link.path))
        )
        name = name_of(path)
        if name:
            url = posixpath.relpath(name, posixpath.dirname(here) or ".")
            element.set(key, urlunsplit(link._replace(path=url)))
        elif element.tag == "a" and os.path.exists(os.path.join(ROOT, path)):
            write_name(element, path)


def write_name(element, path):
    """Turns a link into its text, with the path of the file if the text does not say it."""
    said = "".join(element.itertext())
    element.tag = "span"
    element.attrib.clear()
    if posixpath.basename(path) not in said:
        element.tail = f" ({path})" + (element.tail or "")


class LinksExtension(Extension):
    def __init__(self):
        super().__init__()
        self.links = Links()

    def extendMarkdown(self, md):
        # After Markdown has made the links, and before MkDocs checks them with priority 0.
        md.treeprocessors.register(self.links, "links_of_the_repository", 0.5)


EXTENSION = LinksExtension()


def on_config(config):
    config.markdown_extensions.append(EXTENSION)
    config.nav = with_pages(config.nav)


def with_pages(entries):
    """Returns the entries of a navigation, with all pages in place of a name with a `*`."""
    result = []
    for entry in entries:
        if isinstance(entry, str) and "*" in entry:
            before, _, after = entry.partition("*")
            result += [
                name for name in sorted(PATHS)
                if name.startswith(before) and name.endswith(after)
                and posixpath.basename(name) != "index.md"
            ]
        elif isinstance(entry, dict):
            result.append({
                title: with_pages(value) if isinstance(value, list) else value
                for title, value in entry.items()
            })
        else:
            result.append(entry)
    return result


def on_files(files, config):
    for path, name in NAMES.items():
        files.append(File.generated(config, name, abs_src_path=os.path.join(ROOT, path)))


def on_page_markdown(markdown, page, **_):
    EXTENSION.links.page = page
    return convert(markdown)


def on_post_page(output, page, **_):
    if page.file.src_uri.startswith("ja/"):
        return output.replace('<html lang="en"', '<html lang="ja"', 1)
    return output
