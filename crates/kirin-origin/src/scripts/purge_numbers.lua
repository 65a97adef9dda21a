-- Ends a purge in a cluster: gives its number to all, after purge_name.lua has run for each name.
--
-- KEYS[1] `{k}n`, KEYS[2] `{k}p`.
-- ARGV[1] `hard` or `soft`, as in purge.lua.
-- ARGV[2] the number of the purge.
-- ARGV[3…] prefixes; the empty one is all items.
--
-- Returns {done, number}: {1, the number of the purge}, or {0, another number} if somebody may have
-- read the same or a greater number of `{k}n` already, and then a name before it was purged. The
-- caller purges all names again, under the other number.

local old, number_of_prefixes = pair(redis.pcall("GET", KEYS[1]))
local number = tonumber(ARGV[2])
if old and old >= number then
  local time = redis.call("TIME")
  return { 0, math.max(old + 1, time[1] * 1000000 + time[2]) }
end
note_purge(old, number_of_prefixes, number, ARGV[1] == "hard", 3)
track_numbers()
return { 1, number }
