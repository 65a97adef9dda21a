-- Pages that only an author sees, without a worker: a private memo, and on a public memo the links
-- through the private ones.
--
-- The script uses the items that lib/Memo/PrivatePages.pm has stored, and answers as
-- lib/Memo/Handler/Public.pm does. If an item is missing, or is not the visitor's, the next place
-- answers: the application decides, and stores the missing item.

-- The same fields as in lib/Memo/Response.pm, for one visitor.
local HEADERS = {
  ["Content-Type"] = "text/html; charset=UTF-8",
  ["Cache-Control"] = "private, no-store",
  ["X-Content-Type-Options"] = "nosniff",
  ["X-Frame-Options"] = "DENY",
  ["Referrer-Policy"] = "same-origin",
  ["Content-Security-Policy"] = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
    .. "form-action 'self'; frame-ancestors 'none'",
}

-- Returns the largest id of the lists below `id`, the smallest above it, and whether `id` is in one
-- of them.
local function neighbours(id, ...)
  local older, newer, is_there
  for index = 1, select("#", ...) do
    for text in select(index, ...):gmatch("%d+") do
      local other = tonumber(text)
      if other == id then
        is_there = true
      elseif other < id then
        if not older or other > older then older = other end
      elseif not newer or other < newer then
        newer = other
      end
    end
  end
  return older, newer, is_there
end

-- templates/neighbours.tx
local function links(author, older, newer)
  return table.concat {
    '<nav class="pager" id="neighbours" aria-label="Memos of ', kirin.escape(author), '">\n',
    older and ('<a rel="prev" class="older" href="/memo/%d">← older</a>\n'):format(older) or "<span></span>\n",
    '<span class="where">by you</span>\n',
    newer and ('<a rel="next" class="newer" href="/memo/%d">newer →</a>\n'):format(newer) or "<span></span>\n",
    "</nav>\n",
  }
end

return function(request)
  local number, rest = request.path:match("^/memo/([1-9]%d*)(.*)$")
  local is_asked = request.method == "GET" or request.method == "HEAD"
  if not is_asked or not number or (rest ~= "" and rest ~= "/neighbours") then return nil end

  local session = request.session
  if not session or not session.user_id or not session.name or not session.csrf_token then return nil end
  local author = ("author/%s/"):format(session.user_id)
  local memo = "private/memo/" .. number
  local items = kirin.store.get_multi { author .. "public", author .. "private", memo }
  local public, private, page = items[author .. "public"], items[author .. "private"], items[memo]
  if not public or not private then return nil end

  local older, newer, is_own = neighbours(tonumber(number), public, private)
  if not is_own then return nil end
  local nav = links(session.name, older, newer)
  if rest == "/neighbours" then return { headers = HEADERS, body = nav } end

  -- There is no such item if the memo is public.
  if not page then return nil end
  local owner, html = page:match("^(%d+)\n(.*)$")
  if owner ~= tostring(session.user_id) then return nil end
  local parts = { neighbours = nav, csrf_token = kirin.escape(session.csrf_token) }
  return { headers = HEADERS, body = (html:gsub("<!%-%-# ([a-z_]+) %-%->", parts)) }
end
