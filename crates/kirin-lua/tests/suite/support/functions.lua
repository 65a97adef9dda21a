-- Calls any library function with any text, for a property test and a fuzz target. The body of the request says which: its
-- first byte is the function, its second how often the texts are repeated, and a NUL stands between the two texts.

local k, loaded = kirin, {}

local function list_of(text, make)
  local list = {}
  for i = 1, math.min(#text, 200000) do list[i] = make(text:byte(i), i) end
  return list
end

local functions = {
  function(request) return request:form() end,
  function(request) return request:json() end,
  function(_, a) return k.json.decode(a) end,
  function(_, a, b) return k.json.decode('[' .. a .. b .. ']') end,
  function(_, a) return k.json.encode { a, { [a] = a } } end,
  function(_, a) return k.json.encode(list_of(a, function(byte, i) return { byte / 7, i } end)) end,
  function(_, a) return k.escape(a) end,
  function(_, a) return k.escape_url(a) end,
  function(_, a) return k.unescape_url(a) end,
  function(_, a) return k.sha256(a) end,
  function(_, a, b) return k.hmac_sha256(b, a) .. k.hmac_sha256(a, b) end,
  function(_, a) return k.hex(a) end,
  function(_, a) return k.unbase64(k.base64(a)) end,
  function(_, a) return k.unbase64(a) end,
  function(_, a, b) return k.equals(a, b) or k.equals(a, a .. b) end,
  function(_, a, b) return a:find(b) end,
  function(_, a, b) return a:find(b, 1, true) end,
  function(_, a, b) return a:match(b) end,
  function(_, a, b) return b:match(a) end,
  function(_, a, b) return a:gsub(b, '%0%0') end,
  function(_, a, b) return a:gsub(b, a) end,
  function(_, a, b) return a:gsub(b, function(found) return found .. b end) end,
  function(_, a, b) for found in a:gmatch(b) do loaded[1] = found end end,
  function(_, a, b) return ('%s%q%s'):format(a, b, a) end,
  function(_, a, b) return b:format(a, #a, a) end,
  function(_, a) return a:rep(#a):rep(100) end,
  function(_, a) return a:upper():lower():reverse() end,
  function(_, a) return tonumber(a), tonumber(a, 16) end,
  function(_, a, b) return table.concat(list_of(a, function(byte) return byte / 7 end), b) end,
  function(_, a) local t = list_of(a, function(byte) return byte end) table.sort(t) table.sort(t, rawequal) end,
  function(_, a) local t = list_of(a, function(byte) return byte end) while true do table.insert(t, 1, 0) end end,
  function(_, a) local t = list_of(a, function(byte) return byte end) while true do table.maxn(t) end end,
  function(_, a) return unpack(list_of(a, function(byte) return byte end)) end,
  function(_, a) while true do local text = a .. 'x' loaded[1] = #text end end,
  function(_, a) local t = {} for i = 1, #a do t[a:sub(i)] = i end end,
  function(_, a, b) return k.store.set(b, a) and k.store.append(b, a) and k.store.get(b) end,
  function(_, a, b) return { body = list_of(a, function() return b end), headers = { x = b } } end,
  function(_, a, b) k.log.debug(a, b) error(a) end,
  function(_, a, b) return os.date(a) .. os.date(b) end,
  function(request) return request.args, request.headers, request.cookies end,
}

return function(request)
  local body = request:body()
  local which, times = body:byte(1, 2)
  if not times then return 'too short' end
  local zero = body:find('\0', 3, true) or #body + 1
  local a, b = body:sub(3, zero - 1), body:sub(zero + 1)
  a = a:rep(math.min(2 ^ (times % 20), math.floor(4e6 / (#a + 1))))
  local answer = functions[which % #functions + 1](request, a, b)
  return type(answer) == 'table' and answer.body and answer or 'ended'
end
