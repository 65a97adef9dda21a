-- Ends a write in a cluster: writes the item, unless something else is there than the writer has
-- judged by. put_numbers.lua and put_tag.lua have come before.
--
-- KEYS[1] the item.
-- ARGV[1] the condition, ARGV[2] the version, as in put.lua.
-- ARGV[3] the number of purges that the writer has given. Empty for `any`.
-- ARGV[4] milliseconds until the item expires, as in put.lua.
-- ARGV[5] the encoded item, with the number that it was made under.
--
-- Returns {status, version} as put.lua does. It never has the status 2.

local there, there_made = what_is_there(KEYS[1])
if not is_met(ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), there, there_made) then
  return { 0, there }
end
if not is_ahead(ARGV[5], there) then return { 3, there } end
put_item(KEYS[1], ARGV[5], ARGV[4])
local version = struct.unpack("<I8", ARGV[5], 15)
return { 1, version }
