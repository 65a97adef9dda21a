-- Begins a write in a cluster: finds the number that the item is made under, and whether a flush or a
-- purge of a prefix is in its way. put_tag.lua and put_item.lua go on.
--
-- KEYS[1] `{k}n`, KEYS[2] `{k}p`.
-- ARGV[1] the condition, as in put.lua.
-- ARGV[2] the number of purges that the item was made under. Empty for `any`: the present number.
-- ARGV[3] the item's name in the engine.
-- ARGV[4] a number that a tag has. `{k}n` gets it if that is less, or else 0.
--
-- Returns {N, made, purged}: the present number, the number that the item is made under, and 1 if it
-- was purged, else 0.
--
-- A tag has a greater number than `{k}n` if its purge is not finished yet, or never will be because
-- the Kirin has ended that began it (purge_numbers.lua). It may also be that the numbers were lost.
-- In each case the item must not be made under a number that a later purge could be given.

local number, number_of_prefixes, flushed = present_numbers(KEYS[1], KEYS[2])
local least = tonumber(ARGV[4])
if number < least then
  number = least
  redis.call("SET", KEYS[1], decimal(number) .. ":" .. decimal(number_of_prefixes))
  redis.call("GET", KEYS[1])
end
local made = math.min(tonumber(ARGV[2]) or number, number)
local is_purged = is_purged_by_prefix(ARGV[1], ARGV[3], made, number_of_prefixes, flushed, KEYS[1],
  KEYS[2])
return { number, made, is_purged and 1 or 0 }
