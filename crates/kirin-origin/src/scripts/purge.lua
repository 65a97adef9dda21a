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

local is_hard = ARGV[1] == "hard"
local first_item = 3 + tonumber(ARGV[2])
local last_counted = 2 + tonumber(ARGV[3])
local time = redis.call("TIME")
local now = time[1] * 1000000 + time[2]

local old, number_of_prefixes = pair(redis.pcall("GET", KEYS[1]))
local number = math.max((old or 0) + 1, now)
note_purge(old, number_of_prefixes, number, is_hard, 4)

local tags = 0
for index = 3, first_item - 1 do
  local is_there = purge_tag(KEYS[index], number, is_hard)
  if is_there and index <= last_counted then tags = tags + 1 end
end

local items, greatest = 0, 0
for index = first_item, #KEYS do
  local is_item, version = purge_item(KEYS[index], number, is_hard, now)
  if is_item then items = items + 1 end
  greatest = math.max(greatest, version)
end

track_numbers()
return { number, items, tags, greatest }
