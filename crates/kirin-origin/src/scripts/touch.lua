-- Changes when an item expires, if it still is what the caller has read.
--
-- KEYS[1] the item, KEYS[2…] the keys of its tags.
-- ARGV[1] the version expected.
-- ARGV[2] milliseconds until the item expires; 0 for never.
--
-- Returns {1}, or {0} if nothing, a tombstone, another version or a value that this script cannot
-- read is there. The version of the item stays.
--
-- A tag gets at least the TTL of the item and ten minutes, as in put.lua: without its tag the item
-- would be dead. An absent tag stays absent.

local TAG_MARGIN_MS = 600000
local TOMBSTONE = 4

local head = redis.pcall("GETRANGE", KEYS[1], 0, 30)
if type(head) ~= "string" or #head < 31 or string.byte(head) ~= 1 then return { 0 } end
if bit.band(string.byte(head, 2), TOMBSTONE) ~= 0 then return { 0 } end
local version = struct.unpack("<I8", head, 15)
if version ~= tonumber(ARGV[1]) then return { 0 } end

-- Lets a key expire after `ttl` milliseconds; 0: never.
local function expire(key, ttl)
  if ttl == 0 then
    redis.call("PERSIST", key)
  else
    redis.call("PEXPIRE", key, string.format("%.0f", ttl))
  end
end

local ttl = tonumber(ARGV[2])
expire(KEYS[1], ttl)
local needed = ttl == 0 and 0 or ttl + TAG_MARGIN_MS
for index = 2, #KEYS do
  local left = redis.call("PTTL", KEYS[index])
  if left >= 0 and (needed == 0 or left < needed) then expire(KEYS[index], 2 * needed) end
end
return { 1 }
