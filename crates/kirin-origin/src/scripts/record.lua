-- Replaces a record that is what the caller has read.
--
-- KEYS[1] the record.
-- ARGV[1] 1 if there was a record, and 0 if not.
-- ARGV[2] the record as it was.
-- ARGV[3] 1 if there is a record from now on, and 0 to remove it.
-- ARGV[4] the record as it is from now on.
-- ARGV[5] milliseconds until it expires, or 0.
--
-- Returns {1} if it was replaced, and {0} if it was another.

local present = redis.call("GET", KEYS[1])
local expected = ARGV[1] == "1" and ARGV[2]
if present ~= expected then return { 0 } end
if ARGV[3] ~= "1" then
  redis.call("DEL", KEYS[1])
elseif ARGV[5] ~= "0" then
  redis.call("SET", KEYS[1], ARGV[4], "PX", ARGV[5])
else
  redis.call("SET", KEYS[1], ARGV[4])
end
return { 1 }
