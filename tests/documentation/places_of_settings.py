"""Where in a configuration a setting may stand, if a page does not say so."""
import re
import subprocess

from terminal import CommandError

ROW = re.compile(r"^\| `(?:([a-z_.]+)\.)?([a-z_]+)` \|", re.MULTILINE)
LISTENER = '[[listener]]\naddress = "127.0.0.1:8080"\n'
CERTIFICATES = 'certificates = [{ chain = "c.pem", key = "c.key" }]\n'
ACME = LISTENER + "[listener.tls.acme]\n"
UPSTREAM = '[[upstream]]\nname = "api"\n'
SERVERS = 'servers = ["10.0.0.1:80", "10.0.0.2:80"]\n'
FASTCGI = 'servers = ["fastcgi://127.0.0.1:9000"]\nroot = "/srv/www"\n'
ROUTE = '[[route]]\npath = "/"\n'
TRY = 'try = ["store", "files:public", "app:web"]\n'
ROUTES = 'route = [{ path = "/", try = ["files:public"] }]\n'
RATE = ROUTE + TRY + "[[route.rate_limit]]\n"
# What a setting of a section may follow. It must be good behind one of them.
PLACES = {
    "": [""],
    "listener": [LISTENER, LISTENER + 'trusted = ["10.0.0.0/8"]\n', "[[listener]]\n"],
    "listener.tls": [
        LISTENER + "[listener.tls]\n",
        LISTENER + "[listener.tls]\n" + CERTIFICATES,
        LISTENER + "[listener.tls]\n" + CERTIFICATES + 'client_ca = "ca.pem"\n',
    ],
    "listener.tls.acme": [ACME + 'domains = ["example.org"]\n', ACME],
    "limits": ["[limits]\n"],
    "store": ["[store]\n"],
    "traces": ["[traces]\n", '[traces]\nendpoint = "http://127.0.0.1:4318"\n'],
    "app": ['[[app]]\nname = "web"\nload = "app.psgi"\n', '[[app]]\nname = "web"\n'],
    "open_file_cache": ["[open_file_cache]\n"],
    "lua": ["[lua]\n"],
    "upstream": [
        UPSTREAM + SERVERS,
        UPSTREAM,
        UPSTREAM + SERVERS + 'hash_key = "target"\n',
        UPSTREAM + SERVERS + 'balance = "hash"\n',
        UPSTREAM + SERVERS + "max_in_flight = 8\n",
        UPSTREAM + 'servers = ["https://10.0.0.1"]\n',
        UPSTREAM + 'root = "/srv/www"\n',
        UPSTREAM + FASTCGI,
        UPSTREAM + FASTCGI.removesuffix('root = "/srv/www"\n'),
    ],
    "upstream.servers": [UPSTREAM + '[[upstream.servers]]\naddress = "10.0.0.1:80"\n'],
    "upstream.health": [UPSTREAM + SERVERS + '[upstream.health]\npath = "/health"\n'],
    "route": [
        ROUTE + TRY,
        ROUTE,
        "[[route]]\n" + TRY,
        '[[route]]\npath = "/users/{id}"\n' + TRY,
        '[[route]]\npath = "/users/{id}"\n',
        ROUTE + 'redirect = "/new"\n',
        ROUTE + 'allow = ["10.0.0.0/8"]\n',
        ROUTE + 'try = ["files:public"]\n',
        ROUTE + 'try = ["proxy:api"]\n',
        ROUTE + 'try = ["cgi:program.cgi"]\n',
    ],
    "route.cache": [ROUTE + TRY + "[route.cache]\n"],
    "route.cgi": [ROUTE + 'try = ["cgi:program.cgi"]\n[route.cgi]\n'],
    "route.match": [ROUTE + TRY + "[route.match]\n"],
    "route.error_pages": [ROUTE + TRY + "[route.error_pages]\n"],
    "route.rate_limit": [
        RATE,
        RATE + 'rate = "1/s"\n',
        '[store]\norigin = "redis://10.0.0.5"\n' + RATE + 'rate = "1/s"\n',
    ],
    "access_log": [LISTENER + '[listener.access_log]\npath = "access.log"\n'],
    "site": [
        '[[site]]\nhosts = ["example.org"]\n' + ROUTES,
        "[[site]]\n" + ROUTES,
        '[[site]]\nname = "shop"\n' + ROUTES,
    ],
}
# Keys of tables that the reference describes in a sentence.
IN_SENTENCES = {
    "backup": {"upstream.servers"},
    "weight": {"upstream.servers"},
    "404": {"route.error_pages"},
}


def sections(kirin):
    """Returns the sections that have a key, by the key, as `kirin config-reference` says."""
    reference = subprocess.run(
        [kirin, "config-reference"], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    found = {key: set(sections) for key, sections in IN_SENTENCES.items()}
    for section, key in ROW.findall(reference):
        found.setdefault(key, set()).add(section)
    return found


def check(setting, key, known, checker):
    """Checks a setting in the sections that have its key. Raises `CommandError`."""
    refused = []
    for section in sorted(known.get(key, ())):
        for place in PLACES.get(section, ()):
            try:
                checker.check_configuration(f"{place}{setting}\n", None)
                return
            except CommandError as error:
                refused.append(str(error))
    raise CommandError(f"`{setting}` is in no section:\n" + "\n".join(refused))
