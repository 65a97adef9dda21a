"""lua-page: a page that a script makes of two items in memory."""

from __future__ import annotations

import json
from html import escape

from comparison import Comparison, Entrant
from host import Host, Server
from load import HttpLoad
from peers import floor, kirin, nginx

USER = {"name": "Ann & Bob", "city": "Kamakura", "joined": "2025-11-01"}
MEMOS = [{"id": number, "title": f"Walk <{number}> to the harbour"} for number in range(1, 11)]
ITEMS = {"user/7": json.dumps(USER).encode(), "memos-of/7": json.dumps(MEMOS).encode()}

EXPECTED = "".join(
    [
        f'<!DOCTYPE html><html><head><title>{escape(USER["name"])}</title></head><body>',
        f'<h1>{escape(USER["name"])}</h1><p>{escape(USER["city"])}, since {escape(USER["joined"])}</p><ol>',
        *(f'<li><a href="/memo/{memo["id"]}">{escape(str(memo["title"]))}</a></li>' for memo in MEMOS),
        "</ol></body></html>\n",
    ]
).encode()

ESCAPE_IN_LUA = """
local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#x27;" }
local function escaped(text) return (text:gsub("[&<>\\"']", ENTITIES)) end
"""
RENDER = """
local function render(user, memos)
  local name = escaped(user.name)
  local parts = {
    "<!DOCTYPE html><html><head><title>", name, "</title></head><body><h1>", name, "</h1><p>", escaped(user.city),
    ", since ", escaped(user.joined), "</p><ol>",
  }
  for _, memo in ipairs(memos) do
    parts[#parts + 1] = '<li><a href="/memo/' .. memo.id .. '">' .. escaped(memo.title) .. "</a></li>"
  end
  parts[#parts + 1] = "</ol></body></html>\\n"
  return table.concat(parts)
end
"""
"""The Lua code that all rows share."""

KIRIN_SCRIPT = """
local json, store = kirin.json, kirin.store
return function(request)
  local id = request.args.user
  if not id or not id:find("^%d+$") then return { status = 404, body = "" } end
  local user, memos = store.get("user/" .. id), store.get("memos-of/" .. id)
  if not user or not memos then return { status = 404, body = "" } end
  return render(json.decode(user), json.decode(memos))
end
"""

NGINX_HEAD = """
local cjson = require "cjson"
local id = ngx.var.arg_user
if not id or not id:find("^%d+$") then return ngx.exit(404) end
local user_key, memos_key = "user/" .. id, "memos-of/" .. id
"""
NGINX_FOOT = """
if not user or not memos then return ngx.exit(404) end
local page = render(cjson.decode(user), cjson.decode(memos))
ngx.header.content_length = #page
ngx.print(page)
"""


def start_kirin(host: Host, name: str, escape_function: str) -> Server:
    script = host.directory / f"{name}.lua"
    script.write_text(escape_function + RENDER + KIRIN_SCRIPT)
    return kirin.start(host, name, places=(f"lua:{script}",), pages=ITEMS)


def lua_memcached(host: Host) -> Server:
    """Starts nginx with a script that gets both items from memcached in one request."""
    asking = """
local values, problem = memcached.get(STORE, user_key, memos_key)
if not values then ngx.log(ngx.ERR, problem) return ngx.exit(502) end
local user, memos = values[user_key], values[memos_key]
"""
    return nginx.lua_memcached(
        host,
        "nginx-lua-page",
        ITEMS,
        about="both items by one get",
        locations={"/profile": ESCAPE_IN_LUA + RENDER + NGINX_HEAD + asking + NGINX_FOOT},
    )


def lua_shared_dict(host: Host) -> Server:
    """Starts nginx with a script that gets both items from nginx's own memory."""
    asking = "local user, memos = ngx.shared.pages:get(user_key), ngx.shared.pages:get(memos_key)"
    return nginx.lua_memcached(
        host,
        "nginx-lua-page-dict",
        {},
        about="both items from a lua_shared_dict, nobody asks memcached",
        dict_items=ITEMS,
        locations={"/profile": ESCAPE_IN_LUA + RENDER + NGINX_HEAD + asking + NGINX_FOOT},
    )


COMPARISON = Comparison(
    name="lua-page",
    question="A page that a script makes of two JSON items in memory.",
    entrants=(
        Entrant("kirin", "kirin lua", lambda host: start_kirin(host, "kirin-lua", ESCAPE_IN_LUA)),
        Entrant(
            "kirin",
            "kirin lua, kirin.escape",
            lambda host: start_kirin(host, "kirin-lua-escape", "local escaped = kirin.escape\n"),
        ),
        Entrant("floor", "floor", lambda host: floor.start(host, body_bytes=len(EXPECTED))),
        Entrant("nginx", "nginx lua → memcached", lua_memcached),
        Entrant("nginx", "nginx lua shared dict", lua_shared_dict),
    ),
    loads=(HttpLoad("profile page, 64 connections kept", path="/profile?user=7", expect=EXPECTED),),
    notes=(
        "The function that makes the page of the two decoded items is the same text for all, and so is the one that escapes, but "
        "for the row that has it from Kirin; nginx's Lua has none for HTML.",
        "nginx's Lua asks memcached over kept connections of a unix socket, for both in one `get`, and decodes with lua-cjson. "
        "CPU time of both counts. An application cannot write into the shared dict but through an address of nginx.",
        "Kirin gives each call a time and a memory limit; nginx has none.",
    ),
)
