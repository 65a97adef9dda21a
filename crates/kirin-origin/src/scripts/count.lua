-- Adds to buckets what a machine has let pass. A bucket is the time at which it is full again, in
-- microseconds of the server's clock. One that is full has no key.
--
-- KEYS    the buckets.
-- ARGV[1] the most that a bucket may lack, in microseconds.
-- ARGV[i + 1] what KEYS[i] lacks more from now on, in microseconds.
--
-- Returns for each bucket what it lacks now, in microseconds.
--
-- No command here only reads: the server would report each later change to this machine.

local time = redis.call("TIME")
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local most = tonumber(ARGV[1])

local lacking = {}
for index, key in ipairs(KEYS) do
  local added = tonumber(ARGV[index + 1])
  local sum = redis.pcall("INCRBY", key, ARGV[index + 1])
  if type(sum) ~= "number" then
    -- Kirin has not written this.
    redis.call("DEL", key)
    sum = redis.call("INCRBY", key, ARGV[index + 1])
  end
  -- The limit is for a clock that was set back.
  local full_at = math.min(math.max(sum - added, now), now + most) + added
  set(key, decimal(full_at), math.ceil((full_at - now) / 1000))
  lacking[index] = full_at - now
end
return lacking
