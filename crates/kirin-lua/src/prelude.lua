-- Builds the part of Lua that scripts see. It runs once in each new state, before any script, with
-- functions from Rust.
--
-- It removes all functions that reach outside, and makes the others read-only. It also keeps three
-- promises of sandbox.rs that need Lua itself: no pcall catches the end of a call's time, functions
-- in C do not nest deeply, and waiting works inside of a script's own coroutines.

local host = ...
local error, type, tostring, ipairs, pairs, setmetatable =
  error, type, tostring, ipairs, pairs, setmetatable
local getmetatable, newproxy = getmetatable, newproxy
local rawequal, select, unpack = rawequal, select, unpack
local pcall_plain, xpcall_plain, tonumber_plain = pcall, xpcall, tonumber
local rawget_plain, rawset_plain = rawget, rawset
local create, resume_plain = coroutine.create, coroutine.resume
local status, yield = coroutine.status, coroutine.yield

-- C functions can call Lua functions that call C functions. Each level uses the loop's own stack.
local DEEPEST = 100
local depth = 0

local function deeper()
  if depth >= DEEPEST then error("stack overflow: functions nest too deep", 3) end
  depth = depth + 1
  return depth - 1
end

-- Protected calls ---------------------------------------------------------------------------------

-- An error of a Rust function is a userdata, but scripts get text. Every caught error looks at the
-- clock. Counted code cannot look when the stack is full, so a loop that catches that error would
-- never end.
local function caught(saved, ok, problem, ...)
  depth = saved
  if ok then return true, problem, ... end
  if host.is_up() then error(problem, 0) end
  if type(problem) == "userdata" then problem = host.message(problem) end
  return false, problem, ...
end

local function pcall(...)
  return caught(depth, pcall_plain(...))
end

local function xpcall(f, handler, ...)
  local function handle(problem)
    if host.is_up() then return problem end
    if type(problem) == "userdata" then problem = host.message(problem) end
    return handler(problem)
  end
  return caught(depth, xpcall_plain(f, handle, ...))
end

-- Waiting -----------------------------------------------------------------------------------------

local WAIT = {}

-- A request to the host goes up through all coroutines of the script.
local function wait(kind, what)
  local saved = depth
  local result, problem = yield(WAIT, kind, what)
  depth = saved
  if problem then error(problem, 3) end
  return result
end

local settle

local function again(saved, thread, ...)
  depth = saved + 1
  return settle(saved, thread, resume_plain(thread, ...))
end

function settle(saved, thread, ok, first, ...)
  depth = saved
  if ok and rawequal(first, WAIT) and status(thread) == "suspended" then
    return again(saved, thread, yield(WAIT, ...))
  end
  return caught(saved, ok, first, ...)
end

local function resume(thread, ...)
  local saved = deeper()
  return settle(saved, thread, resume_plain(thread, ...))
end

local function passed_on(ok, ...)
  if not ok then error((...), 0) end
  return ...
end

local function wrap(f)
  local thread = create(f)
  return function(...) return passed_on(resume(thread, ...)) end
end

-- Libraries ---------------------------------------------------------------------------------------

-- A library is not a table for scripts, so every function that writes into tables refuses it.
local function view(library, refuse)
  local proxy = newproxy(true)
  local metatable = getmetatable(proxy)
  metatable.__index, metatable.__newindex, metatable.__metatable = library, refuse, false
  return proxy
end

local function freeze(library, name)
  return view(library, function(_, key)
    error(("%s.%s: %s is read-only"):format(name, tostring(key), name), 2)
  end)
end

-- Libraries that are not made for Kirin check in this way whether a global exists.
local function rawget(t, key)
  if type(t) == "userdata" then return nil end
  return rawget_plain(t, key)
end

local function pick(library, names)
  local picked = {}
  for name in names:gmatch("%S+") do picked[name] = library[name] end
  return picked
end

local strings = pick(string, "byte char len lower rep reverse sub upper")
local format = string.format
local buffered = table.concat

-- A function in C counts as one token, however long its value is. So these functions look at the
-- clock when a value is long, and at the memory for their result. The length is bytes
-- of a text, or members of a table.
local LONG = 64 * 1024
local MANY = 4096

local function timed(f)
  return function(text, ...)
    if type(text) == "string" and #text > LONG then host.check(#text) end
    return f(text, ...)
  end
end

local cut = strings.sub
function strings.sub(text, first, last)
  if type(text) == "string" and #text > LONG then
    local length = type(first) == "number" and (tonumber_plain(last) or -1) - first or -1
    if length < 0 or length > LONG then host.check(#text) end
  end
  return cut(text, first, last)
end

for name in ("lower reverse upper"):gmatch("%a+") do strings[name] = timed(strings[name]) end

local repeated = strings.rep
function strings.rep(text, count)
  if type(count) ~= "number" or count > LONG or type(text) == "string" and #text > LONG then
    host.check()
  end
  return repeated(text, count)
end

local function tonumber(text, base)
  if type(text) == "string" and #text > LONG then host.check() end
  if base == nil then return tonumber_plain(text) end
  return tonumber_plain(text, base)
end

function strings.format(pattern, ...)
  local saved = deeper()
  local text = format(pattern, ...)
  depth = saved
  if #text > LONG then host.check() end
  return text
end

-- Lua's own functions for patterns are several times as fast as those of the host, but nothing
-- interrupts them. So they get the texts for which they do not take long.
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub

local SHORT = 64
local MOST_PATTERNS = 1000
local longest, known = {}, 0

local function learn(pattern)
  if known == MOST_PATTERNS then longest, known = {}, 0 end
  known = known + 1
  local length = host.longest_text(pattern)
  longest[pattern] = length
  return length
end

local function is_quick(text, pattern)
  return type(text) == "string" and type(pattern) == "string" and #pattern <= SHORT
    and #text <= (longest[pattern] or learn(pattern))
end

function strings.find(text, pattern, init, plain)
  if is_quick(text, pattern) then return find(text, pattern, init, plain) end
  return host.find(text, pattern, init, plain)
end

function strings.match(text, pattern, init)
  if is_quick(text, pattern) then return match(text, pattern, init) end
  return host.match(text, pattern, init)
end

-- host.next_match returns the first match at or behind a byte: its first byte, its last byte, and
-- the captures (the complete match if there are none).
function strings.gmatch(subject, pattern)
  if is_quick(subject, pattern) then return gmatch(subject, pattern) end
  local at = 1
  local function step(first, last, ...)
    if not first then return nil end
    at = last >= first and last + 1 or first + 1
    return ...
  end
  return function() return step(host.next_match(subject, pattern, at)) end
end

local function replacement(value, whole)
  if not value then return whole end
  local kind = type(value)
  if kind ~= "string" and kind ~= "number" then
    error("invalid replacement value (a " .. kind .. ")", 3)
  end
  return value
end

local function gsub_by(subject, pattern, with, most)
  local parts, count, at, copied = {}, 0, 1, 1
  local is_table = type(with) == "table"
  local sub = #subject > LONG and strings.sub or cut
  local first, last
  local function step(from, to, capture, ...)
    first, last = from, to
    if not from then return end
    local whole = sub(subject, from, to)
    local value
    if is_table then value = with[capture] else value = with(capture, ...) end
    parts[#parts + 1] = sub(subject, copied, from - 1)
    parts[#parts + 1] = replacement(value, whole)
    copied = to + 1
  end
  local anchored = pattern:byte(1) == 94
  while not most or count < most do
    step(host.next_match(subject, pattern, at, true))
    if not first then break end
    count = count + 1
    at = last >= first and last + 1 or first + 1
    if anchored then break end
  end
  if count == 0 then return subject, 0 end
  parts[#parts + 1] = sub(subject, copied)
  return buffered(parts), count
end

-- A function of the script may wait, so Lua's own function must not call it.
local function is_plain(with)
  if type(with) == "table" then return getmetatable(with) == nil end
  return type(with) == "string" and #with <= SHORT and not find(with, "%", 1, true)
end

function strings.gsub(subject, pattern, with, most)
  if is_plain(with) and is_quick(subject, pattern) then
    return gsub(subject, pattern, with, most)
  end
  local kind = type(with)
  if kind == "function" or kind == "table" then
    return gsub_by(tostring(subject), tostring(pattern), with, most)
  end
  return host.gsub(subject, pattern, with, most)
end

-- Methods of strings.
local methods = getmetatable("")
methods.__index = strings
methods.__metatable = false

local tables = {}
local insert, remove, maxn, sort = table.insert, table.remove, table.maxn, table.sort

local function is_long(t) return type(t) == "table" and #t > MANY end

-- Joins many members slice by slice, because a number among them takes longer than text.
local function concat(t, separator, first, last)
  if not is_long(t) then return buffered(t, separator, first, last) end
  local from, to = first or 1, last or #t
  if type(from) ~= "number" or type(to) ~= "number" or to - from < MANY then
    return buffered(t, separator, first, last)
  end
  local parts = {}
  for at = from, to, MANY do
    host.check()
    parts[#parts + 1] = buffered(t, separator, at, at + MANY - 1 < to and at + MANY - 1 or to)
  end
  return concat(parts, separator)
end

tables.concat = concat

-- Lua's own function moves members down to any position, even far below the table.
function tables.insert(t, position, ...)
  local count = select("#", ...)
  if count == 0 then return insert(t, position) end
  if type(position) == "number" and position < 1 then
    error("bad argument #2 to 'insert' (position out of bounds)", 2)
  end
  if is_long(t) then host.check() end
  return insert(t, position, ...)
end

function tables.remove(t, position)
  if position == nil then return remove(t) end
  if is_long(t) then host.check() end
  return remove(t, position)
end

function tables.maxn(t)
  host.check()
  return maxn(t)
end

local function less(a, b) return a < b end

-- Only a comparison in Lua counts. So the default comparison is one, and a
-- Lua function wraps a given comparison, which may be a C function.
function tables.sort(t, compare)
  local saved = deeper()
  if compare == nil then
    compare = less
  elseif is_long(t) then
    local given = compare
    compare = function(a, b) return (given(a, b)) end
  end
  sort(t, compare)
  depth = saved
end

tables.unpack = unpack
tables.pack = function(...) return { n = select("#", ...), ... } end

local coroutines = pick(coroutine, "create isyieldable running status yield")
coroutines.resume, coroutines.wrap = resume, wrap

local globals = pick(
  _G,
  "assert error getmetatable ipairs next pairs rawequal rawset select setmetatable tostring type unpack"
)
globals._VERSION = _VERSION
globals.pcall, globals.xpcall, globals.rawget, globals.tonumber = pcall, xpcall, rawget, tonumber
globals.print, globals.require = host.print, host.require
globals.string = freeze(strings, "string")
globals.table = freeze(tables, "table")
-- Lua's own function starts with the same numbers in every state.
math.randomseed(host.seed)
globals.math = freeze(math, "math")
globals.bit = freeze(bit, "bit")
globals.coroutine = freeze(coroutines, "coroutine")

local dates = pick(os, "clock date difftime time")

-- The result of a directive may be a hundred times as long as the directive.
function dates.date(format, time)
  if type(format) == "string" and #format > MANY then error("date: the format is too long", 2) end
  if time == nil then return os.date(format or "%c") end
  return os.date(format or "%c", time)
end

globals.os = freeze(dates, "os")

-- Kirin's own -------------------------------------------------------------------------------------

local kirin = host.kirin

function kirin.fetch(target, options)
  return wait("fetch", { (host.request_of(target, options, 0)) })[1]
end

function kirin.fetch_all(requests)
  local asked, bytes = {}, 0
  if #requests > host.most_fetches then
    error(("fetch_all: %d requests at most"):format(host.most_fetches), 2)
  end
  for index = 1, #requests do
    local request = requests[index]
    local target, options = request, nil
    if type(request) == "table" then target, options = request[1], request end
    asked[index], bytes = host.request_of(target, options, bytes)
  end
  if #asked == 0 then return {} end
  return wait("fetch", asked)
end

function host.methods.body(request)
  local body = rawget_plain(request, 1)
  if body == nil then
    body = host.has_body(request) and wait("body") or ""
    rawset_plain(request, 1, body)
  end
  return body
end

function host.methods.form(request) return host.parse_form(request:body()) end

function host.methods.json(request) return kirin.json.decode(request:body()) end

-- With a server behind the store, a function of it may return what the script must wait for.
if host.has_origin then
  local store, unknown = kirin.store, host.unknown

  local function known(first, call, ...)
    if not rawequal(first, unknown) then return first, call, ... end
    return unpack(wait("store", call), 1, 3)
  end

  local get_multi = store.get_multi
  for name, f in pairs(store) do
    store[name] = function(...) return known(f(...)) end
  end

  function store.get_multi(keys)
    local found, call = get_multi(keys)
    if call then
      for key, value in pairs(wait("store", call)[1]) do found[key] = value end
    end
    return found
  end
end

-- A field is made at its first use, and kept.
host.request_metatable = {
  __index = function(request, name)
    local method = host.methods[name]
    if method then return method end
    local value = host.field(request, name)
    if type(value) == "userdata" then
      local text = wait("store", value)[1]
      value = text and kirin.json.decode(text)
    end
    rawset_plain(request, name, value)
    return value
  end,
  __metatable = false,
}

host.headers_metatable = {
  __index = function(headers, name)
    if type(name) == "string" then return rawget_plain(headers, strings.lower(name)) end
  end,
  __metatable = false,
}

function kirin.respond_json(value, status)
  local headers = { ["Content-Type"] = "application/json" }
  return { status = status, headers = headers, body = kirin.json.encode(value) }
end

function kirin.redirect(location, status)
  return { status = status or 303, headers = { Location = location } }
end

for _, name in ipairs { "store", "json", "log" } do
  kirin[name] = freeze(kirin[name], "kirin." .. name)
end
globals.kirin = freeze(kirin, "kirin")

-- The globals of a script are those of its modules too. They are read-only, so that one request
-- cannot leave values for the next.
local function refuse(_, name)
  error(("assignment to global '%s': declare it local"):format(tostring(name)), 2)
end

-- No script gets the table itself.
local environment =
  setmetatable({}, { __index = globals, __newindex = refuse, __metatable = false })
globals._G = view(globals, refuse)

local function enter(handler, request)
  depth = 0
  return handler(request)
end

return environment, enter, WAIT
