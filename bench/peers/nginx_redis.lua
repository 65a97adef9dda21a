-- Pages and tags in a redis-server, for the rows of nginx. It uses lua-resty-redis (Debian's package
-- lua-nginx-redis) as its documentation shows it, with kept connections.
local redis = require "nginx.redis"

local KEPT_MS, MOST_KEPT = 600000, 512

-- The keys that one UNLINK names.
local KEYS_A_COMMAND = 1000

local pages = {}

local function fail(problem)
  ngx.log(ngx.ERR, problem)
  return ngx.exit(502)
end

local function connect(port)
  local client = redis:new()
  local ok, problem = client:connect("127.0.0.1", port)
  if not ok then return nil, problem end
  return client
end

local function send(page)
  ngx.header.content_length = #page
  ngx.print(page)
end

local function fetch(port)
  local client, problem = connect(port)
  if not client then return nil, problem end
  local page
  page, problem = client:get("page:" .. ngx.var.uri)
  if not page then return nil, problem end
  client:set_keepalive(KEPT_MS, MOST_KEPT)
  return page
end

-- Answers with the page in the server, which is asked for each request.
function pages.send(port)
  local page, problem = fetch(port)
  if not page then return fail(problem) end
  if page == ngx.null then return ngx.exit(404) end
  send(page)
end

-- Answers with the page in a shared dictionary. The server is asked for what is not there, and again
-- after `seconds`.
function pages.send_kept(dictionary, port, seconds)
  local page = dictionary:get(ngx.var.uri)
  if page then return send(page) end
  local problem
  page, problem = fetch(port)
  if not page then return fail(problem) end
  if page == ngx.null then return ngx.exit(404) end
  dictionary:set(ngx.var.uri, page, seconds)
  send(page)
end

-- Removes all items of the tag of the query string, which has a set of their keys.
function pages.purge(port)
  local client, problem = connect(port)
  if not client then return fail(problem) end
  local set = "tag:" .. ngx.var.arg_tag
  local keys
  keys, problem = client:smembers(set)
  if not keys then return fail(problem) end
  client:init_pipeline()
  for first = 1, #keys, KEYS_A_COMMAND do
    client:unlink(unpack(keys, first, math.min(first + KEYS_A_COMMAND - 1, #keys)))
  end
  client:unlink(set)
  local removed
  removed, problem = client:commit_pipeline()
  if not removed then return fail(problem) end
  client:set_keepalive(KEPT_MS, MOST_KEPT)
  send(tostring(#keys))
end

return pages
