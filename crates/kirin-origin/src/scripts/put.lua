-- Writes an item, unless somebody else has changed or purged what the writer has judged by.
--
-- KEYS[1] the item, KEYS[2] `{k}n`, KEYS[3] `{k}p`, KEYS[4…] the keys of its tags.
-- ARGV[1] the condition: `any`, `version` (what is there has the version ARGV[2]; 0: nothing is
--         there) or `page` (what is there is not newer than a page that was begun).
-- ARGV[2] the version expected, or the version at which the page was begun.
-- ARGV[3] the number of purges that the item was made under. Empty for `any`: the present number.
-- ARGV[4] milliseconds until the item expires; 0 for never; `keep` for those that are left of what
--         is there.
-- ARGV[5] `1` if the engine may evict keys without a TTL, else `0`.
-- ARGV[6] the encoded item. Its own `made` is a guess for `any`.
--
-- Returns {status, N, version}: the present number N of `{k}n`, and the version that is there at
-- the end; 0 if nothing is there. A status:
--   0 changed: the condition is not met.
--   1 stored.
--   2 purged: a purge after `made` kills the item. For `version` and `page` it is also any later
--     soft purge of a tag or of all items, and for `page` any later purge of a prefix of the key.
--     For `version` it is any later purge of a prefix, since the writer did not know it. For `any`
--     it means that the number of a tag is greater than N, which only a lost N can cause.
--   3 the version in ARGV[6] is not greater than the version that is there.
-- Nothing but `{k}n` and `{k}p` is written with a status other than 1.
--
-- A value under the item's key that this script cannot read has the version UNREADABLE. It may be
-- from a newer Kirin, so only `any` replaces it. An empty value counts as absent.

-- A page in progress may still carry a tag for as long as this after the last item of the tag.
local TAG_MARGIN_MS = 600000

-- The numbers. They are lost if one of the keys is absent or unreadable, or if `{k}n` is older than
-- the last flush. Then all items that were made before die, because nobody knows their purges.
local number, number_of_prefixes = pair(redis.pcall("GET", KEYS[2]))
local flushed = pair(redis.pcall("HGET", KEYS[3], ""))
if not number or not flushed or flushed > number then
  local time = redis.call("TIME")
  number = math.max((number or 0) + 1, time[1] * 1000000 + time[2])
  number_of_prefixes, flushed = number, number
  redis.call("SET", KEYS[2], decimal(number) .. ":" .. decimal(number))
  redis.call("DEL", KEYS[3])
  redis.call("HSET", KEYS[3], "", decimal(number) .. ":0")
  -- A write ends the tracking of a key, and a read begins it: see purge.lua.
  redis.call("GET", KEYS[2])
  redis.call("HLEN", KEYS[3])
end

-- What is there. Only its head is read: the value may be large.
local there, there_made = 0, 0
local head = redis.pcall("GETRANGE", KEYS[1], 0, 30)
if head ~= "" then
  there = UNREADABLE
  if type(head) == "string" and #head == 31 and string.byte(head) == 1 then
    there_made, there = struct.unpack("<I8I8", head, 7)
    there = math.min(there, UNREADABLE)
  end
end

local condition, expected, given_made = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if condition == "version" and (there ~= expected or there == UNREADABLE)
  or condition == "page" and (there > expected or there_made > given_made) then
  return { 0, number, there }
end

-- A writer may know a greater number than an engine that has lost its last writes. With that number
-- the item would survive the next purges.
local made = math.min(given_made or number, number)
local is_purged = flushed > made or condition == "version" and number_of_prefixes > made
if condition == "page" and number_of_prefixes > made then
  -- `{k}n` begins with the key prefix in braces. The names of items have the prefix and `i:`.
  local key = string.sub(KEYS[1], #KEYS[2])
  local fields = redis.call("HGETALL", KEYS[3])
  for index = 1, #fields, 2 do
    local hard, soft = pair(fields[index + 1])
    local is_later = not hard or math.max(hard, soft) > made
    is_purged = is_purged or is_later and string.sub(key, 1, #fields[index]) == fields[index]
  end
end
local new_tags = {}
for index = 4, #KEYS do
  local text = redis.pcall("GET", KEYS[index])
  local hard, soft = pair(text)
  if not hard then
    -- An absent tag was never purged, unless the engine evicts such keys. An unreadable one may
    -- have been purged.
    hard, soft = (text or ARGV[5] == "1") and number or 0, 0
    new_tags[index] = decimal(hard) .. ":0"
  end
  is_purged = is_purged or hard > made or condition ~= "any" and soft > made
end
if is_purged then return { 2, number, there } end

local item = ARGV[6]
local version = struct.unpack("<I8", item, 15)
if version <= there and there ~= UNREADABLE then return { 3, number, there } end

-- Writes a key that expires after `ttl` milliseconds; 0: never.
local function set(key, value, ttl)
  if ttl == 0 then
    redis.call("SET", key, value)
  else
    redis.call("SET", key, value, "PX", decimal(ttl))
  end
end

-- The item comes first: an engine whose memory is full refuses only the first write of a script, but
-- never a DEL. A tombstone must be written then, too.
local TOMBSTONE = 4
if bit.band(string.byte(item, 2), TOMBSTONE) ~= 0 then redis.call("DEL", KEYS[1]) end
local ttl
if ARGV[4] == "keep" then
  ttl = math.max(redis.call("PTTL", KEYS[1]), 0)
  redis.call("SET", KEYS[1], item, "KEEPTTL")
else
  ttl = tonumber(ARGV[4])
  set(KEYS[1], item, ttl)
end
-- Lua would copy a large item twice to change its number.
if made ~= struct.unpack("<I8", item, 7) then
  redis.call("SETRANGE", KEYS[1], 6, struct.pack("<I8", made))
end

-- A tag outlives its items. A new TTL is a change of the tag: each Kirin with copies of its items
-- is told, and drops them. So the TTL is twice what is needed, and seldom renewed.
local needed = ttl == 0 and 0 or ttl + TAG_MARGIN_MS
for index = 4, #KEYS do
  local key = KEYS[index]
  if new_tags[index] then
    set(key, new_tags[index], 2 * needed)
  else
    local left = redis.call("PTTL", key)
    if left >= 0 and needed == 0 then
      redis.call("PERSIST", key)
    elseif left >= 0 and left < needed then
      redis.call("PEXPIRE", key, decimal(2 * needed))
    end
  end
end
return { 1, number, version }
