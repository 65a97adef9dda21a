-- What the scripts that use numbers begin with.

-- Redis before 7 must be told that the script writes after TIME. Later servers always allow it.
if redis.replicate_commands then redis.replicate_commands() end

-- The greatest number that a double holds exactly. No readable number reaches it, so adding one is
-- safe.
local UNREADABLE = 2 ^ 53 - 1

-- Returns a number as digits. Lua itself would write `1.8e+15`.
local function decimal(number)
  return string.format("%.0f", number)
end

-- Returns the numbers of a text `A:B`, or nothing if a key is absent or has another value.
local function pair(text)
  if type(text) ~= "string" then return end
  local a, b = string.match(text, "^(%d+):(%d+)$")
  if not a then return end
  a, b = tonumber(a), tonumber(b)
  if a < UNREADABLE and b < UNREADABLE then return a, b end
end

-- Writes a key that expires after `ttl` milliseconds; 0: never.
local function set(key, value, ttl)
  if ttl == 0 then
    redis.call("SET", key, value)
  else
    redis.call("SET", key, value, "PX", decimal(ttl))
  end
end
