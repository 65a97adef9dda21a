"""store-page: a page that an application has stored in memory."""

from __future__ import annotations

import page
from comparison import Budget, Comparison, Entrant
from load import HttpLoad
from peers import floor, kirin, nginx

PATH = "/page"
PAGE = page.html(1024)

COMPARISON = Comparison(
    name="store-page",
    question="A page of 1 KB from memory: what does it cost above the bare event loop, and beside nginx?",
    entrants=(
        Entrant("kirin", "kirin store", lambda host: kirin.start(host, pages={PATH: kirin.html(PAGE)})),
        Entrant("floor", "floor", lambda host: floor.start(host, body_bytes=len(PAGE))),
        Entrant("nginx", "nginx return", lambda host: nginx.returning(host, PAGE)),
        Entrant("nginx", "nginx lua say", lambda host: nginx.lua_say(host, PAGE)),
        Entrant("nginx", "nginx lua shared dict", lambda host: nginx.lua_shared_dict(host, PAGE)),
        Entrant("nginx", "nginx → memcached", lambda host: nginx.memcached_plain(host, {PATH: PAGE})),
        Entrant("nginx", "nginx → memcached, tuned", lambda host: nginx.memcached_tuned(host, {PATH: PAGE})),
    ),
    loads=(HttpLoad("1 KB page, 64 connections kept", path=PATH, expect=PAGE),),
    budgets=(
        Budget("≤ 1.15 × floor", "kirin store", "floor", 1.15),
        Budget("a fifth of nginx → memcached", "kirin store", "nginx → memcached", 1 / 5),
    ),
    notes=(
        "The floor does not look at the request and its body is not the page, only as long.",
        "`return` and `lua say` have the page in the configuration: nobody can change it while they run. Only the "
        "shared dict, memcached and Kirin hold a page that an application can replace.",
        "nginx → memcached counts the CPU time of both, all on one core.",
        "Heads differ: `answer bytes` is the whole answer.",
    ),
)
