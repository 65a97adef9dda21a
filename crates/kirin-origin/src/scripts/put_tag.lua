-- Lets a tag outlive an item that is about to be written or touched on another server of a cluster.
--
-- KEYS[1] the tag.
-- ARGV[1] the present number of `{k}n`. Empty if an absent tag stays absent.
-- ARGV[2] `1` if the engine may evict keys without a TTL, else `0`.
-- ARGV[3] milliseconds until the item expires; 0 for never.
--
-- Returns {hard, soft}: the numbers of the tag.

local number = tonumber(ARGV[1])
local hard, soft, new_text = numbers_of_tag(KEYS[1], number or 0, ARGV[2] == "1")
if number or not new_text then keep_tag(KEYS[1], new_text, tonumber(ARGV[3])) end
return { hard, soft }
