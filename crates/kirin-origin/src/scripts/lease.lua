-- Takes, renews or ends a lease.
--
-- KEYS[1] the lease.
-- ARGV[1] what to do: `take`, `renew`, `end`, or `useless`: end it, and tell others that what was
--         made under it is of no use for them.
-- ARGV[2] the holder.
-- ARGV[3] milliseconds until the lease, or the note that it was useless, expires.
--
-- Returns {1} if the holder has the lease, or had it. Otherwise {0}, or {2} if it was useless.

local USELESS = "useless"

local holder = redis.call("GET", KEYS[1])
if ARGV[1] == "take" then
  if holder == USELESS then return { 2 } end
  if holder then return { 0 } end
  redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
  return { 1 }
end
if holder ~= ARGV[2] then return { 0 } end
if ARGV[1] == "renew" then
  redis.call("PEXPIRE", KEYS[1], ARGV[3])
elseif ARGV[1] == "end" then
  redis.call("DEL", KEYS[1])
else
  redis.call("SET", KEYS[1], USELESS, "PX", ARGV[3])
end
return { 1 }
