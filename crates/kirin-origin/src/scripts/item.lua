-- An item that is written.

-- Returns the version that is under a key and the number that it was made under; 0 if nothing is
-- there. Only its head is read: the value may be large.
local function what_is_there(key)
  local head = redis.pcall("GETRANGE", key, 0, 30)
  if head == "" then return 0, 0 end
  if type(head) ~= "string" or #head ~= 31 or string.byte(head) ~= 1 then return UNREADABLE, 0 end
  local made, version = struct.unpack("<I8I8", head, 7)
  return math.min(version, UNREADABLE), made
end

-- Returns whether what is there meets the condition of a write. `made` is what the writer has given.
local function is_met(condition, expected, made, there, there_made)
  if condition == "version" then return there == expected and there ~= UNREADABLE end
  return condition ~= "page" or there <= expected and there_made <= made
end

-- Returns whether the version of an item is greater than the one that is there, or takes its place.
local function is_ahead(item, there)
  return there == UNREADABLE or struct.unpack("<I8", item, 15) > there
end

-- The mark of a tombstone.
local TOMBSTONE = 4

-- Writes an item or a tombstone. `ttl` is in milliseconds; 0 for never; `keep` for what is left of
-- what is there. Returns the TTL in milliseconds.
local function put_item(key, item, ttl)
  -- An engine whose memory is full refuses only the first write of a script, but never a DEL. A
  -- tombstone must be written then, too.
  if bit.band(string.byte(item, 2), TOMBSTONE) ~= 0 then redis.call("DEL", key) end
  if ttl == "keep" then
    ttl = math.max(redis.call("PTTL", key), 0)
    redis.call("SET", key, item, "KEEPTTL")
  else
    ttl = tonumber(ttl)
    set(key, item, ttl)
  end
  return ttl
end
