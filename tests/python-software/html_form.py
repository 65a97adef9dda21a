"""The fields of a form on a page, as a browser sends them."""
from html.parser import HTMLParser

NOT_SENT = ("submit", "button", "file", "image", "reset")


class _Fields(HTMLParser):
    def __init__(self, action):
        super().__init__()
        self.action = action
        self.pairs = []
        self.is_inside = False
        self.select = self.textarea = None

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        name, value = given.get("name"), given.get("value") or ""
        if tag == "form":
            self.is_inside = given.get("action", "") == self.action
        elif not self.is_inside:
            return
        elif tag == "input" and name and given.get("type") not in NOT_SENT:
            if given.get("type") not in ("checkbox", "radio") or "checked" in given:
                self.pairs.append((name, value))
        elif tag == "select":
            self.select = name
        elif tag == "option" and self.select and "selected" in given:
            self.pairs.append((self.select, value))
        elif tag == "textarea":
            self.textarea = (name, "")

    def handle_data(self, data):
        if self.textarea:
            self.textarea = (self.textarea[0], self.textarea[1] + data)

    def handle_endtag(self, tag):
        if tag == "form":
            self.is_inside = False
        elif tag == "select":
            self.select = None
        elif tag == "textarea" and self.textarea:
            self.pairs.append(self.textarea)
            self.textarea = None


def fields_of_form(page, action, **changes):
    """Returns the fields of the form with this action, with some changed or added."""
    parser = _Fields(action)
    parser.feed(page.body.decode())
    if not parser.pairs:
        raise AssertionError(f"no form with the action {action!r} in\n{page}")
    return [pair for pair in parser.pairs if pair[0] not in changes] + list(changes.items())
