-- What a purge does to the numbers, to tags and to items.

-- No page takes longer than this. So it is how long tombstones, and tags without items, are kept.
local KEPT_MS = 600000
-- More prefixes make each read of an item slower.
local MOST_PREFIXES = 1024
-- The marks of an item.
local STALE, WON, TOMBSTONE = 1, 2, 4

-- Returns the new text for the present text `hard:soft` of a tag or prefix. `hard_if_unreadable`
-- stands for a hard number that is not known.
local function raised(text, hard_if_unreadable, number, is_hard)
  local hard, soft = pair(text)
  if not hard then hard, soft = hard_if_unreadable, 0 end
  if is_hard then hard = math.max(hard, number) else soft = math.max(soft, number) end
  return decimal(hard) .. ":" .. decimal(soft)
end

-- Notes the number of a purge, and the prefixes that it purges: ARGV from `first_prefix` on. `old`
-- and `number_of_prefixes` are those of `{k}n`.
--
-- The numbers are lost if one of the keys is absent or unreadable, or if `{k}n` is older than the
-- last flush. Then all items that were made before die, because nobody knows their purges.
local function note_purge(old, number_of_prefixes, number, is_hard, first_prefix)
  local flushed = pair(redis.pcall("HGET", KEYS[2], ""))
  local is_lost = not old or not flushed or flushed > old
  if is_lost or #ARGV >= first_prefix then number_of_prefixes = number end

  -- An engine whose memory is full refuses the first write of a script, but never a DEL. A purge
  -- must work then, too.
  redis.call("DEL", KEYS[1])
  redis.call("SET", KEYS[1], decimal(number) .. ":" .. decimal(number_of_prefixes))
  if is_lost then
    redis.call("DEL", KEYS[2])
    redis.call("HSET", KEYS[2], "", decimal(number) .. ":0")
  end

  -- An absent prefix was never purged. An unreadable one may have been.
  for index = first_prefix, #ARGV do
    local prefix = ARGV[index]
    local text = redis.call("HGET", KEYS[2], prefix)
    redis.call("HSET", KEYS[2], prefix, raised(text, text and number or 0, number, is_hard))
  end

  -- Too many prefixes: all items that are as old as the older half of the purges die in their place.
  if redis.call("HLEN", KEYS[2]) - 1 > MOST_PREFIXES then
    local fields = redis.call("HGETALL", KEYS[2])
    local prefixes = {}
    for index = 1, #fields, 2 do
      if fields[index] ~= "" then
        local hard, soft = pair(fields[index + 1])
        local last = hard and math.max(hard, soft) or 0
        prefixes[#prefixes + 1] = { name = fields[index], last = last }
      end
    end
    table.sort(prefixes, function(a, b) return a.last < b.last end)
    local dropped = math.floor(#prefixes / 2)
    for index = 1, dropped do redis.call("HDEL", KEYS[2], prefixes[index].name) end
    local hard, soft = pair(redis.call("HGET", KEYS[2], ""))
    hard = math.max(hard, prefixes[dropped].last)
    redis.call("HSET", KEYS[2], "", decimal(hard) .. ":" .. decimal(soft))
  end
end

-- Lets the caller learn of the next purge: a write ends the tracking of a key, and a read begins it.
local function track_numbers()
  redis.call("GET", KEYS[1])
  redis.call("HLEN", KEYS[2])
end

-- Purges a tag. Returns whether it was there.
--
-- An absent tag may have been evicted, and items that a hard purge has killed may still be there.
-- They stay dead, because a soft purge, too, creates the tag with a hard number.
local function purge_tag(key, number, is_hard)
  local text = redis.pcall("GET", key)
  local is_there, left = pair(text) ~= nil, -2
  if is_there then left = redis.call("PTTL", key) end
  text = raised(text, number, number, is_hard)
  -- See note_purge: this may be the first write of a script.
  redis.call("DEL", key)
  if left == -1 then
    redis.call("SET", key, text)
  else
    redis.call("SET", key, text, "PX", decimal(math.max(left, KEPT_MS)))
  end
  return is_there
end

-- Purges an item. Returns whether there was one, and the version that is there now. `now` is the
-- time of the server of `{k}n` in microseconds.
local function purge_item(key, number, is_hard, now)
  local head = redis.pcall("GETRANGE", key, 0, 30)
  local is_readable = type(head) == "string" and #head == 31 and string.byte(head) == 1
  local marks, version = 0, 0
  if is_readable then
    marks = string.byte(head, 2)
    version = struct.unpack("<I8", head, 15)
  end
  local is_item = head ~= "" and bit.band(marks, TOMBSTONE) == 0
  version = version < UNREADABLE and math.max(version + 1, now) or now
  -- Versions are even, see encoding.rs.
  version = version + version % 2
  if is_hard or not is_item or not is_readable then
    local tombstone = struct.pack("<BBI4I8I8I8B", 1, TOMBSTONE, 0, number, version, 0, 0)
    redis.call("DEL", key)
    redis.call("SET", key, tombstone, "PX", KEPT_MS)
  else
    -- The version becomes the CAS unique again, as a client's own one would still match.
    marks = bit.bor(bit.band(marks, bit.bnot(WON)), STALE)
    local new_head = string.char(1, marks) .. string.sub(head, 3, 14)
      .. struct.pack("<I8I8", version, 0)
    redis.call("SETRANGE", key, 0, new_head)
  end
  return is_item, version
end
