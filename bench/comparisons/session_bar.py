"""session-bar: a page from memory that shows the name of its reader."""

from __future__ import annotations

import json

import page
from comparison import Comparison, Entrant
from host import Host, Server
from load import HttpLoad
from peers import floor, kirin, nginx

PATH, COOKIE = "/page", "session"
SESSION = "0123456789abcdef" * 2
NAME, TOKEN = "ann & bob", "fedcba9876543210" * 4
ITEM = json.dumps({"user_id": 7, "name": NAME, "csrf_token": TOKEN}).encode()

SIGNED_IN = (
    'signed in as <strong>{name}</strong><form method="post" action="/signout">'
    '<input type="hidden" name="csrf_token" value="{token}"><button>Sign out</button></form>'
)
SIGNED_OUT = '<a href="/signin">Sign in</a>'


def page_with(bar: str) -> bytes:
    """Returns a page of 1 KB with a bar in its upper part."""
    return page.html(1024).replace(b"<p>", f"<header>{bar}</header><p>".encode(), 1)


FOR_MEMBER = page_with(SIGNED_IN.format(name="ann &amp; bob", token=TOKEN))
FOR_STRANGER = page_with(SIGNED_OUT)

KIRIN_BAR = (
    '<!--# if expr="$session.name" -->'
    + SIGNED_IN.format(name='<!--# echo var="session.name" -->', token='<!--# echo var="session.csrf_token" -->')
    + f"<!--# else -->{SIGNED_OUT}<!--# endif -->"
)
PLACE = "<!--bar-->"
"""The place in the page where Lua puts the bar."""

# The code with which each row of nginx uses the item of a session.
LUA_BAR = f"""
    local cjson = require "cjson.safe"
    local ENTITIES = {{ ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }}
    local function escaped(text) return (text:gsub("[&<>\\"']", ENTITIES)) end
    local function session_id()
      local id = ngx.var.cookie_{COOKIE}
      return id and #id >= 32 and #id <= 128 and not id:find("[^0-9a-fA-F]") and id or nil
    end
    local function bar(item)
      local session = item and cjson.decode(item)
      if not session or not session.name then return [==[{SIGNED_OUT}]==] end
      return [==[{SIGNED_IN.split("{name}")[0]}]==] .. escaped(session.name)
        .. [==[{SIGNED_IN.split("{name}")[1].split("{token}")[0]}]==] .. escaped(session.csrf_token)
        .. [==[{SIGNED_IN.split("{token}")[1]}]==]
    end
"""
LUA_PAGE = f"""
    local from, to = page:find("{PLACE}", 1, true)
    local parts = {{ page:sub(1, from - 1), bar(item), page:sub(to + 1) }}
    ngx.header.content_length = #parts[1] + #parts[2] + #parts[3]
    ngx.print(parts)
"""


def start_kirin(host: Host) -> Server:
    pages = {PATH: kirin.html(page_with(KIRIN_BAR)), SESSION: ITEM}
    return kirin.start(host, pages=pages, session_cookie=COOKIE)


def lua_memcached(host: Host) -> Server:
    """Starts nginx with a script that gets page and session from memcached in one request."""
    return nginx.lua_memcached(
        host,
        "nginx-lua-session",
        {PATH: page_with(PLACE), SESSION: ITEM},
        about="page and session by one get",
        locations={
            "/": f"""{LUA_BAR}
    local id = session_id()
    local values, problem = memcached.get(STORE, ngx.var.uri, id)
    if not values then ngx.log(ngx.ERR, problem) return ngx.exit(502) end
    local page, item = values[ngx.var.uri], id and values[id]
    if not page then return ngx.exit(404) end
    {LUA_PAGE}"""
        },
    )


def lua_shared_dict(host: Host) -> Server:
    """Starts nginx with the page in its own memory."""
    return nginx.lua_memcached(
        host,
        "nginx-lua-session-dict",
        {SESSION: ITEM},
        about="page from a lua_shared_dict, session from memcached",
        dict_items={PATH: page_with(PLACE)},
        locations={
            "/": f"""{LUA_BAR}
    local page, id = ngx.shared.pages:get(ngx.var.uri), session_id()
    if not page then return ngx.exit(404) end
    local item
    if id then
      local values, problem = memcached.get(STORE, id)
      if not values then ngx.log(ngx.ERR, problem) return ngx.exit(502) end
      item = values[id]
    end
    {LUA_PAGE}"""
        },
    )


def ssi_and_lua(host: Host) -> Server:
    """Starts nginx with the page by `memcached_pass` and the bar by a subrequest."""
    return nginx.lua_memcached(
        host,
        "nginx-ssi-session",
        {PATH: page_with('<!--# include virtual="/session-bar" -->'), SESSION: ITEM},
        about="page by memcached_pass with ssi on, which includes a bar by content_by_lua",
        locations={
            "= /session-bar": f"""{LUA_BAR}
    local id, item = session_id(), nil
    if id then
      local values, problem = memcached.get(STORE, id)
      if not values then ngx.log(ngx.ERR, problem) return ngx.exit(502) end
      item = values[id]
    end
    ngx.print(bar(item))"""
        },
        pass_rest=True,
    )


COMPARISON = Comparison(
    name="session-bar",
    question="A page from memory with the visitor's name and token, from the visitor's session in memory.",
    entrants=(
        Entrant("kirin", "kirin store, session.*", start_kirin),
        Entrant("floor", "floor", lambda host: floor.start(host, body_bytes=len(FOR_MEMBER))),
        Entrant("nginx", "nginx lua → memcached", lua_memcached),
        Entrant("nginx", "nginx lua shared dict, session → memcached", lua_shared_dict),
        Entrant("nginx", "nginx SSI → memcached, bar by lua", ssi_and_lua),
    ),
    loads=(
        HttpLoad("signed in, 64 connections kept", path=PATH, expect=FOR_MEMBER, cookie=f"{COOKIE}={SESSION}"),
        HttpLoad("a stranger, 64 connections kept", path=PATH, expect=FOR_STRANGER),
    ),
    notes=(
        "The session is JSON: user_id, name, csrf_token. The name is escaped.",
        "nginx's Lua asks memcached over kept connections of a unix socket, for all it needs in one `get`, and decodes with "
        "lua-cjson. With the page in the shared dict an application would need an address to write it through.",
        "All visitors have the same session here. Kirin keeps the parsed session with the item; nginx decodes it for each request.",
        "nginx counts the CPU time of memcached too.",
    ),
)
