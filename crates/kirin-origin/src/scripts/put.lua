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

local number, number_of_prefixes, flushed = present_numbers(KEYS[2], KEYS[3])
local there, there_made = what_is_there(KEYS[1])
local condition, expected, given_made = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if not is_met(condition, expected, given_made, there, there_made) then
  return { 0, number, there }
end

-- A writer may know a greater number than an engine that has lost its last writes. With that number
-- the item would survive the next purges.
local made = math.min(given_made or number, number)
local is_purged = is_purged_by_prefix(condition, KEYS[1], made, number_of_prefixes, flushed,
  KEYS[2], KEYS[3])
local new_tags = {}
for index = 4, #KEYS do
  local hard, soft, new_text = numbers_of_tag(KEYS[index], number, ARGV[5] == "1")
  new_tags[index] = new_text
  is_purged = is_purged or hard > made or condition ~= "any" and soft > made
end
if is_purged then return { 2, number, there } end

local item = ARGV[6]
if not is_ahead(item, there) then return { 3, number, there } end

-- The item comes first: see put_item.
local ttl = put_item(KEYS[1], item, ARGV[4])
-- Lua would copy a large item twice to change its number.
if made ~= struct.unpack("<I8", item, 7) then
  redis.call("SETRANGE", KEYS[1], 6, struct.pack("<I8", made))
end
for index = 4, #KEYS do keep_tag(KEYS[index], new_tags[index], ttl) end
local version = struct.unpack("<I8", item, 15)
return { 1, number, version }
