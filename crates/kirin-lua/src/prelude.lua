-- Builds what scripts see of Lua. Run once in each new state, before any script, with the functions that Rust gives.
--
-- It takes away what reaches outside, makes what is left read-only, and keeps three promises of sandbox.rs that need Lua
-- itself: no pcall catches the end of a call's time, functions in C do not nest deep, and waiting works inside of a script's
-- own coroutines.

local host = ...
local error, type, tostring, ipairs, setmetatable = error, type, tostring, ipairs, setmetatable
local rawget, rawequal, select, unpack = rawget, rawequal, select, unpack
local pcall_plain, xpcall_plain, rawset_plain = pcall, xpcall, rawset
local create, resume_plain, status, yield = coroutine.create, coroutine.resume, coroutine.status, coroutine.yield

-- C functions that call Lua functions that call C functions: each level takes the loop's own stack.
local DEEPEST = 100
local depth = 0

local function deeper()
  if depth >= DEEPEST then error("stack overflow: functions nest too deep", 3) end
  depth = depth + 1
  return depth - 1
end

-- Protected calls -----------------------------------------------------------------------------------------------------

-- An error of a Rust function is a userdata; scripts get text.
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

-- Waiting -------------------------------------------------------------------------------------------------------------

local WAIT = {}

-- What the host is asked for goes up through all coroutines of the script.
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

-- Libraries -----------------------------------------------------------------------------------------------------------

local read_only = setmetatable({}, { __mode = "k" })

local function freeze(library, name)
  local proxy = setmetatable({}, {
    __index = library,
    __newindex = function(_, key)
      error(("%s.%s: %s is read-only"):format(name, tostring(key), name), 2)
    end,
    __metatable = false,
  })
  read_only[proxy] = true
  return proxy
end

local function rawset(t, key, value)
  if read_only[t] then error("rawset: the table is read-only", 2) end
  return rawset_plain(t, key, value)
end

local function pick(library, names)
  local picked = {}
  for name in names:gmatch("%S+") do picked[name] = library[name] end
  return picked
end

local strings = pick(string, "byte char len lower rep reverse sub upper")
local format = string.format
local buffered = table.concat

strings.find, strings.match = host.find, host.match

-- To the hook a function in C is one instruction, however long the text is that it goes over.
local LONG = 64 * 1024

local function timed(f)
  return function(text, ...)
    if type(text) == "string" and #text > LONG then host.check() end
    return f(text, ...)
  end
end

for name in ("lower reverse upper"):gmatch("%a+") do strings[name] = timed(strings[name]) end

local repeated = strings.rep
function strings.rep(text, count)
  if type(count) == "number" and count > LONG or type(text) == "string" and #text > LONG then host.check() end
  return repeated(text, count)
end

function strings.format(pattern, ...)
  local saved = deeper()
  local text = format(pattern, ...)
  depth = saved
  return text
end

-- host.next_match gives the first match at or behind a byte: its first byte, its last, and the captures (the whole match if
-- there are none).
function strings.gmatch(subject, pattern)
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
  local first, last
  local function step(from, to, capture, ...)
    first, last = from, to
    if not from then return end
    local whole = subject:sub(from, to)
    local value
    if is_table then value = with[capture] else value = with(capture, ...) end
    parts[#parts + 1] = subject:sub(copied, from - 1)
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
  parts[#parts + 1] = subject:sub(copied)
  return buffered(parts), count
end

function strings.gsub(subject, pattern, with, most)
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

local tables = pick(table, "concat insert maxn remove")
local sort = table.sort

local function less(a, b) return a < b end

-- Without a comparison in Lua no hook looks at the clock.
function tables.sort(t, compare)
  local saved = deeper()
  sort(t, compare or less)
  depth = saved
end

tables.unpack = unpack
tables.pack = function(...) return { n = select("#", ...), ... } end

local coroutines = pick(coroutine, "create isyieldable running status yield")
coroutines.resume, coroutines.wrap = resume, wrap

local globals = pick(_G, "assert error getmetatable ipairs next pairs rawequal rawget select setmetatable tonumber tostring type unpack")
globals._VERSION = _VERSION
globals.pcall, globals.xpcall, globals.rawset = pcall, xpcall, rawset
globals.print, globals.require = host.print, host.require
globals.string = freeze(strings, "string")
globals.table = freeze(tables, "table")
globals.math = freeze(math, "math")
globals.bit = freeze(bit, "bit")
globals.coroutine = freeze(coroutines, "coroutine")
globals.os = freeze(pick(os, "clock date difftime time"), "os")

-- Kirin's own ---------------------------------------------------------------------------------------------------------

local kirin = host.kirin

function kirin.fetch(target, options)
  return wait("fetch", { host.request_of(target, options) })[1]
end

function kirin.fetch_all(requests)
  local asked = {}
  for index = 1, #requests do
    local request = requests[index]
    if type(request) == "table" then
      asked[index] = host.request_of(request[1], request)
    else
      asked[index] = host.request_of(request)
    end
  end
  if #asked == 0 then return {} end
  return wait("fetch", asked)
end

function host.methods.body(request)
  local body = rawget(request, 1)
  if body == nil then
    body = host.has_body(request) and wait("body") or ""
    rawset_plain(request, 1, body)
  end
  return body
end

function host.methods.form(request) return host.parse_form(request:body()) end

function host.methods.json(request) return kirin.json.decode(request:body()) end

-- A field is made when it is asked for, and kept.
host.request_metatable = {
  __index = function(request, name)
    local method = host.methods[name]
    if method then return method end
    local value = host.field(request, name)
    rawset_plain(request, name, value)
    return value
  end,
  __metatable = false,
}

host.headers_metatable = {
  __index = function(headers, name)
    if type(name) == "string" then return rawget(headers, strings.lower(name)) end
  end,
  __metatable = false,
}

function kirin.respond_json(value, status)
  return { status = status, headers = { ["Content-Type"] = "application/json" }, body = kirin.json.encode(value) }
end

function kirin.redirect(location, status)
  return { status = status or 303, headers = { Location = location } }
end

for _, name in ipairs { "store", "json", "log" } do kirin[name] = freeze(kirin[name], "kirin." .. name) end
globals.kirin = freeze(kirin, "kirin")

-- Globals of a script are its modules' too, and read-only: what one request sets is not for the next to find.
local environment = setmetatable({}, {
  __index = globals,
  __newindex = function(_, name)
    error(("assignment to global '%s': declare it local"):format(tostring(name)), 2)
  end,
  __metatable = false,
})
read_only[environment] = true
globals._G = environment

local function enter(handler, request)
  depth = 0
  return handler(request)
end

return environment, enter, WAIT
