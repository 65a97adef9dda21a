"""Templates."""
import functools
import hashlib
import time
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from memo.response import CONTENT_SECURITY_POLICY


class View:
    """The templates of a directory. All are loaded at once, before a server forks its workers."""

    def __init__(self, directory):
        self._files = sorted(Path(directory).glob("*.html"))
        if not self._files:
            raise FileNotFoundError(f"no templates in {directory}")
        self._environment = Environment(
            loader=FileSystemLoader(directory),
            autoescape=True,
            finalize=_escaped,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            auto_reload=False,
        )
        self._environment.globals["content_security_policy"] = CONTENT_SECURITY_POLICY
        self._environment.filters.update(iso=_iso, minute=_minute)
        for file in self._files:
            self._environment.get_template(file.name)

    def render(self, template, **variables):
        """Returns a page, or a part of one."""
        return Markup(self._environment.get_template(template).render(variables))

    @functools.cached_property
    def fingerprint(self):
        """A value that changes with the templates. Pages of old templates are then useless."""
        digest = hashlib.sha256()
        for file in self._files:
            digest.update(file.read_bytes())
        return digest.hexdigest()[:16]


def _escaped(value):
    """Returns a value as HTML.

    Jinja2 writes a quotation mark as `&#34;`. Kirin and the Lua script write `&quot;`, and a page
    must be the same whichever of them fills in the visitor's name.
    """
    return Markup(str(escape(value)).replace("&#34;", "&quot;"))


def _minute(seconds):
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def _iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
