-- A memcached client over a cosocket, for the rows of nginx. It works as lua-resty-memcached, which
-- Debian does not package: with one request for all keys, and with kept connections.
local tcp = ngx.socket.tcp

local memcached = {}

-- Returns the values of the keys that exist, by key. Returns nil and a reason if memcached could not
-- be asked.
function memcached.get(address, ...)
  local socket = tcp()
  local ok, problem = socket:connect(address)
  if not ok then return nil, problem end
  ok, problem = socket:send("get " .. table.concat({ ... }, " ") .. "\r\n")
  if not ok then return nil, problem end
  local values = {}
  while true do
    local line
    line, problem = socket:receive("*l")
    if not line then return nil, problem end
    if line == "END" then break end
    local key, length = line:match("^VALUE (%S+) %d+ (%d+)$")
    if not key then return nil, line end
    local value
    value, problem = socket:receive(tonumber(length) + 2)
    if not value then return nil, problem end
    values[key] = value:sub(1, -3)
  end
  socket:setkeepalive(600000, 512)
  return values
end

return memcached
