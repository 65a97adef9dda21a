-- The tags of an item that is written.

-- A page in progress may still carry a tag for as long as this after the last item of the tag.
local TAG_MARGIN_MS = 600000

-- Returns the numbers of a tag, and its new text if it must get one.
--
-- An absent tag was never purged, unless the engine evicts such keys. An unreadable one may have
-- been purged.
local function numbers_of_tag(key, number, evicts)
  local text = redis.pcall("GET", key)
  local hard, soft = pair(text)
  if hard then return hard, soft end
  hard = (text or evicts) and number or 0
  return hard, 0, decimal(hard) .. ":0"
end

-- Lets a tag outlive an item that expires after `ttl` milliseconds; 0: never. `new_text` is what it
-- gets, if it must get something.
--
-- A new TTL is a change of the tag: each Kirin with copies of its items is told, and drops them. So
-- the TTL is twice what is needed, and seldom renewed.
local function keep_tag(key, new_text, ttl)
  local needed = ttl == 0 and 0 or ttl + TAG_MARGIN_MS
  if new_text then
    set(key, new_text, 2 * needed)
    return
  end
  local left = redis.call("PTTL", key)
  if left >= 0 and needed == 0 then
    redis.call("PERSIST", key)
  elseif left >= 0 and left < needed then
    redis.call("PEXPIRE", key, decimal(2 * needed))
  end
end
