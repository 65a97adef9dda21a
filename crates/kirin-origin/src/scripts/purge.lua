-- Purges tags, prefixes and items under one new number.
--
-- KEYS[1] `{k}n`, KEYS[2] `{k}p`, then the keys of ARGV[2] tags, then the keys of items.
-- ARGV[1] `hard` (they are gone) or `soft` (they are stale).
-- ARGV[2] how many tags KEYS has.
-- ARGV[3] how many of them are counted, the first ones.
-- ARGV[4…] prefixes; the empty one is all items.
--
-- Returns {number, items, tags, version}: the number of this purge, how many of the named items and
-- counted tags were there, and the greatest version that an item or a tombstone has now; 0 for none.
-- A tombstone is no item.
--
-- A hard purge leaves a tombstone under the key of each item. Where nothing was, a soft purge does
-- so too: a page in progress must not be stored there. A value that this script cannot read counts
-- as an item, and becomes a tombstone in a soft purge too, because the script cannot mark it.

-- No page takes longer than this. So it is how long tombstones, and tags without items, are kept.
local KEPT_MS = 600000
-- More prefixes make each read of an item slower.
local MOST_PREFIXES = 1024
-- The marks of an item.
local STALE, WON, TOMBSTONE = 1, 2, 4

local is_hard = ARGV[1] == "hard"
local first_item = 3 + tonumber(ARGV[2])
local last_counted = 2 + tonumber(ARGV[3])
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

-- The numbers. They are lost if one of the keys is absent or unreadable, or if `{k}n` is older than
-- the last flush. Then all items that were made before die, because nobody knows their purges.
local old, number_of_prefixes = pair(redis.pcall("GET", KEYS[1]))
local flushed = pair(redis.pcall("HGET", KEYS[2], ""))
local is_lost = not old or not flushed or flushed > old
local number = math.max((old or 0) + 1, now)
if is_lost or #ARGV > 3 then number_of_prefixes = number end

-- An engine whose memory is full refuses the first write of a script, but never a DEL. A purge must
-- work then, too.
redis.call("DEL", KEYS[1])
redis.call("SET", KEYS[1], decimal(number) .. ":" .. decimal(number_of_prefixes))
if is_lost then
  redis.call("DEL", KEYS[2])
  redis.call("HSET", KEYS[2], "", decimal(number) .. ":0")
end

-- Returns the new text for the present text `hard:soft` of a tag or prefix. `hard_if_unreadable`
-- stands for a hard number that is not known.
local function raised(text, hard_if_unreadable)
  local hard, soft = pair(text)
  if not hard then hard, soft = hard_if_unreadable, 0 end
  if is_hard then hard = math.max(hard, number) else soft = math.max(soft, number) end
  return decimal(hard) .. ":" .. decimal(soft)
end

-- An absent tag may have been evicted, and items that a hard purge has killed may still be there.
-- They stay dead, because a soft purge, too, creates the tag with a hard number.
local tags = 0
for index = 3, first_item - 1 do
  local key = KEYS[index]
  local text = redis.pcall("GET", key)
  local left = -2
  if pair(text) then
    if index <= last_counted then tags = tags + 1 end
    left = redis.call("PTTL", key)
  end
  text = raised(text, number)
  if left == -1 or left >= KEPT_MS then
    redis.call("SET", key, text, "KEEPTTL")
  else
    redis.call("SET", key, text, "PX", KEPT_MS)
  end
end

-- An absent prefix was never purged. An unreadable one may have been.
for index = 4, #ARGV do
  local prefix = ARGV[index]
  local text = redis.call("HGET", KEYS[2], prefix)
  redis.call("HSET", KEYS[2], prefix, raised(text, text and number or 0))
end

-- Too many prefixes: all items that are as old as the older half of the purges die in their place.
if redis.call("HLEN", KEYS[2]) - 1 > MOST_PREFIXES then
  local fields = redis.call("HGETALL", KEYS[2])
  local prefixes = {}
  for index = 1, #fields, 2 do
    if fields[index] ~= "" then
      local hard, soft = pair(fields[index + 1])
      prefixes[#prefixes + 1] = { name = fields[index], last = hard and math.max(hard, soft) or 0 }
    end
  end
  table.sort(prefixes, function(a, b) return a.last < b.last end)
  local dropped = math.floor(#prefixes / 2)
  for index = 1, dropped do redis.call("HDEL", KEYS[2], prefixes[index].name) end
  local hard, soft = pair(redis.call("HGET", KEYS[2], ""))
  hard = math.max(hard, prefixes[dropped].last)
  redis.call("HSET", KEYS[2], "", decimal(hard) .. ":" .. decimal(soft))
end

local items, greatest = 0, 0
for index = first_item, #KEYS do
  local key = KEYS[index]
  local head = redis.pcall("GETRANGE", key, 0, 30)
  local is_readable = type(head) == "string" and #head == 31 and string.byte(head) == 1
  local marks, version = 0, 0
  if is_readable then
    marks = string.byte(head, 2)
    version = struct.unpack("<I8", head, 15)
  end
  local is_item = head ~= "" and bit.band(marks, TOMBSTONE) == 0
  if is_item then items = items + 1 end
  version = version < UNREADABLE and math.max(version + 1, now) or now
  -- Versions are even, see encoding.rs.
  version = version + version % 2
  greatest = math.max(greatest, version)
  if is_hard or not is_item or not is_readable then
    local tombstone = struct.pack("<BBI4I8I8I8B", 1, TOMBSTONE, 0, number, version, 0, 0)
    redis.call("SET", key, tombstone, "PX", KEPT_MS)
  else
    -- The version becomes the CAS unique again, as a client's own one would still match.
    marks = bit.bor(bit.band(marks, bit.bnot(WON)), STALE)
    local new_head = string.char(1, marks) .. string.sub(head, 3, 14)
      .. struct.pack("<I8I8", version, 0)
    redis.call("SETRANGE", key, 0, new_head)
  end
end

-- A write ends the tracking of a key, and a read begins it. So the caller learns of the next purge.
redis.call("GET", KEYS[1])
redis.call("HLEN", KEYS[2])
return { number, items, tags, greatest }
