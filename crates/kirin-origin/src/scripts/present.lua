-- The present numbers, as a write needs them.

-- Returns N and M of `{k}n`, and the number of the last flush.
--
-- The numbers are lost if one of the keys is absent or unreadable, or if `{k}n` is older than the
-- last flush. Then all items that were made before die, because nobody knows their purges.
local function present_numbers(number_key, purges_key)
  local number, number_of_prefixes = pair(redis.pcall("GET", number_key))
  local flushed = pair(redis.pcall("HGET", purges_key, ""))
  if number and flushed and flushed <= number then return number, number_of_prefixes, flushed end
  local time = redis.call("TIME")
  number = math.max((number or 0) + 1, time[1] * 1000000 + time[2])
  redis.call("SET", number_key, decimal(number) .. ":" .. decimal(number))
  redis.call("DEL", purges_key)
  redis.call("HSET", purges_key, "", decimal(number) .. ":0")
  -- A write ends the tracking of a key, and a read begins it: see purge.lua.
  redis.call("GET", number_key)
  redis.call("HLEN", purges_key)
  return number, number, number
end

-- Returns whether a flush, or a purge of a prefix, is in the way of an item that was made under a
-- number. `key` is the item's name in the engine.
local function is_purged_by_prefix(condition, key, made, number_of_prefixes, flushed, number_key,
    purges_key)
  if flushed > made then return true end
  if condition == "any" or number_of_prefixes <= made then return false end
  if condition == "version" then return true end
  -- `{k}n` begins with the key prefix in braces. The names of items have the prefix and `i:`.
  key = string.sub(key, #number_key)
  local fields = redis.call("HGETALL", purges_key)
  for index = 1, #fields, 2 do
    local hard, soft = pair(fields[index + 1])
    local is_later = not hard or math.max(hard, soft) > made
    if is_later and string.sub(key, 1, #fields[index]) == fields[index] then return true end
  end
  return false
end
