"""What may differ between Kirin's response and that of another server, each with its reason."""
import re
from email.utils import parsedate_to_datetime

# Fields that belong to the server and not to the application.
OF_THE_SERVER = {
    "date": "two responses have two times",
    "server": "Kirin does not name itself",
    "connection": "a field for this connection: gunicorn says keep-alive, which is the default",
    "transfer-encoding": "how a body is framed is a matter between this server and this client",
}

# Fields that only Kirin may send. If the other server sends one, Kirin must send the same.
ADDED_BY_KIRIN = {
    "content-length": "Kirin adds a length that it knows, where others send chunks",
    "accept-ranges": "Kirin answers ranges of the files that an application hands back",
    "etag": "and conditions",
    "last-modified": "and conditions",
}

# Fields in which Kirin as a file server differs from WhiteNoise. Steps with a static file use them.
OF_THE_FILE_SERVER = {
    "etag": "each file server has tags of its own",
    "cache-control": "WhiteNoise sends max-age=60, Kirin what the route says",
    "access-control-allow-origin": "WhiteNoise allows all origins",
    "accept-ranges": "WhiteNoise does not send it",
    "content-type": "WhiteNoise writes charset=\"utf-8\", with quotation marks",
    "vary": "Kirin compresses the file for clients that can read that",
    "x-content-type-options": "Django's SecurityMiddleware adds these to files of WhiteNoise",
    "referrer-policy": "as above",
    "cross-origin-opener-policy": "as above",
}

# Fields of a file that both applications have made during the test.
OF_A_NEW_FILE = {"last-modified": "each application has made its file at another time"}

# The time of now, as Django's admin and Wagtail write it for people.
TIME_FOR_PEOPLE = r"\w+\.? \d+, \d{4}, ([\d:]+ [ap]\.m\.|midnight|noon)"

DAY_SECONDS = 24 * 60 * 60

# Cookies with a value that is random or has a time in it.
RANDOM_COOKIES = {"csrftoken", "sessionid", "session", "messages"}


def comparable_fields(answer, ignored=()):
    """Returns the fields of a response that must be the same: lists of values by name."""
    fields = {}
    for name, value in answer.fields:
        name = name.lower()
        if name in OF_THE_SERVER or name in ignored:
            continue
        # Django and WhiteNoise say 0, which RFC 9110 (8.6) forbids. Kirin leaves it out.
        if name == "content-length" and answer.status == 304:
            continue
        if name == "set-cookie":
            value = _cookie(value)
        elif name == "expires":
            value = _expiry(value, answer)
        fields.setdefault(name, []).append(value)
    return {name: sorted(values) for name, values in fields.items()}


def _cookie(line):
    name, _, rest = line.partition("=")
    value, _, attributes = rest.partition(";")
    if name in RANDOM_COOKIES and value not in ("", '""'):
        value = "RANDOM"
    return f"{name}={value};" + re.sub(r"(?i)(expires=)[^;]+", r"\1WHEN", attributes)


def _expiry(date, answer):
    """Returns a date near to that of the response as minutes after it.

    The two responses may be from two seconds, or from more on a machine that is busy.
    """
    times = [parsedate_to_datetime(text).timestamp() for text in (date, answer.field("date"))]
    seconds = times[0] - times[1]
    return f"{round(seconds / 60)} minutes" if abs(seconds) <= DAY_SECONDS else date
