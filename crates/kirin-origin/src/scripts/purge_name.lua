-- Purges a tag or an item in a cluster. purge_numbers.lua ends the purge.
--
-- KEYS[1] the tag or the item.
-- ARGV[1] `hard` or `soft`, as in purge.lua.
-- ARGV[2] `tag` or `item`.
-- ARGV[3] the number of the purge.
-- ARGV[4] the time of the server of `{k}n` in microseconds.
--
-- Returns {there, version}: 1 if the tag or an item was there, else 0; and the version that an item
-- or a tombstone has now, 0 for a tag.

local is_hard, number, now = ARGV[1] == "hard", tonumber(ARGV[3]), tonumber(ARGV[4])
if ARGV[2] == "tag" then
  return { purge_tag(KEYS[1], number, is_hard) and 1 or 0, 0 }
end
-- An engine whose memory is full refuses the first write of a script, but never a TTL. A purge must
-- work then, too.
local left = redis.call("PTTL", KEYS[1])
if left >= 0 then
  redis.call("PEXPIRE", KEYS[1], decimal(math.max(left, 1)))
else
  redis.call("PERSIST", KEYS[1])
end
local is_item, version = purge_item(KEYS[1], number, is_hard, now)
return { is_item and 1 or 0, version }
