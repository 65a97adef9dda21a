//! Scripts and what becomes of them, without a server.

use bytes::Bytes;
use kirin_http::request::{BodyLength, Version};
use kirin_http::{
    Body, Client, FieldLines, ListenAddress, Method, Origin, Peer, RequestHead, Response, StatusCode,
};
use kirin_lua::{Called, Fault, Fetched, Limits, LuaError, ScriptFile, Step, Supply, Wanted};
use kirin_store::{NewItem, Now, Store, StoreConfig};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const NOW: Now = Now::from_unix_seconds(1_700_000_000);

struct Site {
    directory: TempDir,
    store: Arc<Store>,
    limits: Limits,
}

impl Site {
    fn new() -> Self {
        let limits = Limits { time: Duration::from_secs(10), memory_bytes: 32 << 20, body_bytes: 1 << 20 };
        Self {
            directory: TempDir::new().unwrap(),
            store: Arc::new(Store::new(StoreConfig::default())),
            limits,
        }
    }

    fn write(&self, name: &str, source: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, source).unwrap();
        path
    }

    fn open(&self, source: &str) -> Result<ScriptFile, LuaError> {
        let path = self.write("page.lua", source);
        ScriptFile::open(path, Arc::clone(&self.store), Rc::new(()), self.limits)
    }

    /// A script whose function has this body.
    fn handler(&self, body: &str) -> ScriptFile {
        self.open(&format!("return function(request)\n{body}\nend")).unwrap()
    }
}

fn called(method: Method, target: &str, fields: &[(&str, &str)], body: BodyLength) -> Called {
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| httparse::Header { name, value: value.as_bytes() }).collect();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let request = RequestHead {
        method,
        target,
        path,
        query,
        version: Version::Http11,
        host: "site.test",
        fields: &fields,
        body,
        persistent: true,
        expects_continue: false,
    };
    let (peer, local) = (Peer::Tcp("192.0.2.7:1234".parse().unwrap()), ListenAddress::Unix("x".into()));
    let origin =
        Origin { peer: &peer, local: &local, secure: true, client: Client::NotAsked, proxy: None, now: 0 };
    Called::of(&request, origin, path.as_bytes(), None)
}

fn get(target: &str) -> Called {
    called(Method::GET, target, &[], BodyLength::None)
}

fn answered(step: Step) -> Response {
    match step {
        Step::Answered(response) => response,
        Step::Passed => panic!("passed"),
        Step::Failed(fault) => panic!("failed: {fault:?}"),
        Step::Waiting(_) => panic!("waits"),
    }
}

fn fault(step: Step) -> Fault {
    match step {
        Step::Failed(fault) => fault,
        Step::Answered(response) => panic!("answered {response:?} {}", text(&response)),
        Step::Passed => panic!("passed"),
        Step::Waiting(_) => panic!("waits"),
    }
}

fn bytes(response: &Response) -> Vec<u8> {
    match &response.body {
        Body::Empty => Vec::new(),
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::Segments(segments) => segments.concat(),
        other => panic!("{other:?}"),
    }
}

fn text(response: &Response) -> String {
    String::from_utf8_lossy(&bytes(response)).into_owned()
}

/// What a function with this body answers.
fn says(body: &str) -> String {
    text(&answered(Site::new().handler(body).call(get("/"), NOW)))
}

#[test]
fn a_string_is_a_page() {
    let response = answered(Site::new().handler("return '<p>hello'").call(get("/"), NOW));
    assert_eq!((response.status, text(&response)), (StatusCode::OK, "<p>hello".into()));
    assert_eq!(response.fields.get("content-type"), Some(&b"text/html; charset=utf-8"[..]));
}

#[test]
fn a_table_is_a_response() {
    let site = Site::new();
    let script = site.handler(
        "return { status = 201, headers = { ['Content-Type'] = 'text/plain', ['X-N'] = 7, ['Set-Cookie'] = { 'a=1', 'b=2' } },
                  body = { 'one ', 2, ' ', 'three' } }",
    );
    let response = answered(script.call(get("/"), NOW));
    assert_eq!((response.status.as_u16(), text(&response)), (201, "one 2 three".into()));
    let fields: Vec<_> =
        response.fields.iter().filter(|(name, _)| *name == b"Set-Cookie").map(|(_, value)| value).collect();
    assert_eq!(fields, [b"a=1", b"b=2"]);
    assert_eq!(response.fields.get("x-n"), Some(&b"7"[..]));
}

#[test]
fn nothing_and_pass_are_for_the_next_place() {
    for body in ["", "return nil", "return kirin.pass()"] {
        assert!(matches!(Site::new().handler(body).call(get("/"), NOW), Step::Passed), "{body}");
    }
}

#[test]
fn a_response_that_cannot_be_is_an_error() {
    for body in [
        "return { status = 99 }",
        "return { status = 'x' }",
        "return { status = 101 }",
        "return { headers = { ['Content-Length'] = '3' }, body = 'x' }",
        "return { headers = { ['A b'] = '3' } }",
        "return { headers = { A = 'b\\r\\nC: d' } }",
        "return { headers = { A = {} , B = print } }",
        "return { body = { {} } }",
        "return { body = print }",
        "return print",
    ] {
        assert_eq!(fault(Site::new().handler(body).call(get("/"), NOW)), Fault::Error, "{body}");
    }
}

#[test]
fn a_request_tells_all_about_itself() {
    let site = Site::new();
    let script = site.handler(
        "local r = request
         return table.concat({ r.method, r.target, r.path, r.query, r.args.a, r.args.b, r.headers['X-One'], r.headers['x-one'],
           r.headers['X-Two'], r.cookies.sid, r.cookies.other, r.remote_addr, r.scheme, r.host, r.version, tostring(r.user),
           tostring(r.headers.none), tostring(r.session), r:body() }, '|')",
    );
    let fields =
        [("x-ONE", "1"), ("X-Two", "2"), ("x-two", "3"), ("Cookie", "sid=a%20b; other=\"q\"; sid=second")];
    let called = called(Method::GET, "/p?a=1&b=x+y%21&a=2", &fields, BodyLength::None);
    assert_eq!(
        text(&answered(script.call(called, NOW))),
        "GET|/p?a=1&b=x+y%21&a=2|/p|a=1&b=x+y%21&a=2|2|x y!|1|1|2, 3|a b|q|192.0.2.7|https|site.test|HTTP/1.1|nil|nil|nil|"
    );
}

#[test]
fn the_store_is_at_hand() {
    let site = Site::new();
    site.store.set(b"there", NewItem::new(b"\x00\xffvalue").flags(5), NOW);
    let script = site.handler(
        "local s = kirin.store
         local value, cas, flags = s.get('there')
         assert(value == '\\0\\255value' and flags == 5 and cas > 0)
         assert(s.get('gone') == nil)
         assert(s.set('a', 'x', 60) and s.set('b', 7, { ttl = 1, flags = 3, tags = { 't' } }))
         local found = s.get_multi { 'a', 'b', 'c' }
         assert(found.a == 'x' and found.b == '7' and found.c == nil)
         local _, why = s.add('a', 'y'); assert(why == 'not stored')
         _, why = s.replace('none', 'y'); assert(why == 'not stored')
         _, why = s.cas('a', 'z', 12345678); assert(why == 'exists')
         _, why = s.cas('none', 'z', 1); assert(why == 'not found')
         _, cas = s.get('a'); assert(s.cas('a', 'z', cas)); assert(s.get('a') == 'z')
         assert(s.incr('b', 3) == 10 and s.decr('b') == 9)
         _, why = s.incr('none'); assert(why == 'not found')
         _, why = s.incr('a'); assert(why == 'not a number')
         assert(s.incr('n', 1, { initial = 100, ttl = 5 }) == 100 and s.incr('n') == 101)
         assert(s.append('a', '!') and s.prepend('a', '!') and s.get('a') == '!z!')
         assert(s.touch('a', 5) and not s.touch('none', 5))
         assert(s.delete('a') and not s.delete('a'))
         assert(s.invalidate_tag('t') and s.get('b') == nil)
         assert(s.set('p/1', 1) and s.invalidate_prefix('p/') and s.get('p/1') == nil)
         assert(not s.set(('k'):rep(3000), 'x'))
         return 'well'",
    );
    assert_eq!(text(&answered(script.call(get("/"), NOW))), "well");
    // The memcached side sees the same.
    assert!(site.store.get(b"n", NOW).is_some());
    assert!(site.store.get(b"n", NOW.plus_seconds(6)).is_none());
}

#[test]
fn a_large_piece_of_the_store_is_not_copied() {
    let site = Site::new();
    let large = vec![b'x'; 100_000];
    site.store.set(b"large", NewItem::new(&large[..]), NOW);
    site.store.set(b"small", NewItem::new(b"s"), NOW);
    let script = site.handler(
        "local large, small = kirin.store.piece('large'), kirin.store.piece('small')
         assert(#large == 100000 and tostring(small) == 's' and kirin.store.piece('gone') == nil)
         return { body = { 'a', small, large, large:sub(2, 3), 'z' } }",
    );
    let response = answered(script.call(get("/"), NOW));
    assert_eq!(bytes(&response), [b"as", &large[..], b"xxz"].concat());
    let Body::Segments(segments) = &response.body else { panic!("{:?}", response.body) };
    let stored = site.store.get(b"large", NOW).unwrap().value();
    assert!(segments.iter().any(|segment| segment.as_ptr() == stored.as_ptr()));
}

#[test]
fn json_goes_both_ways() {
    assert_eq!(
        says(
            "local json = kirin.json
             local text = '{\"a\":[1,2.5,-3,true,false,null,\"x\\\\u00e9\\\\n\"],\"o\":{},\"l\":[],\"big\":12345678901}'
             local value = json.decode(text)
             assert(value.a[1] == 1 and value.a[2] == 2.5 and value.a[4] == true and value.a[6] == json.null and #value.a == 7)
             assert(value.a[7] == 'x\\195\\169\\n' and value.big == 12345678901)
             assert(json.encode(value.o) == '{}' and json.encode(value.l) == '[]' and json.encode(json.array()) == '[]')
             assert(json.encode(value.a) == '[1,2.5,-3,true,false,null,\"x\\195\\169\\\\n\"]', json.encode(value.a))
             assert(json.encode('</script>') == '\"<\\\\/script>\"', json.encode('</script>'))
             assert(json.encode(1e15) == '1000000000000000' and json.encode(0.1) == '0.1')
             return json.encode { x = { 'a', { b = json.null } } }"
        ),
        r#"{"x":["a",{"b":null}]}"#
    );
}

#[test]
fn what_json_cannot_say_is_an_error() {
    for value in [
        "0/0",
        "1/0",
        "print",
        "{ 1, a = 2 }",
        "{ [1] = 1, [3] = 3 }",
        "{ [true] = 1 }",
        "'\\255'",
        "{ [1.5] = 2 }",
    ] {
        let body = format!("return kirin.json.encode({value})");
        assert_eq!(fault(Site::new().handler(&body).call(get("/"), NOW)), Fault::Error, "{value}");
    }
    let holds_itself = "local t = {} t.t = t return kirin.json.encode(t)";
    assert_eq!(fault(Site::new().handler(holds_itself).call(get("/"), NOW)), Fault::Error);
    for text in ["", "{", "[1,]", "{a:1}", "nul", "1 2", "'x'", "\"\\255\"", "\\0", "[01]", "\"\\n\""] {
        let found = says(&format!(
            "local value, problem = kirin.json.decode(\"{}\") return type(value) .. type(problem)",
            text.replace('"', "\\\"").replace("\\\\\"", "\\\"")
        ));
        assert_eq!(found, "nilstring", "{text}");
    }
    assert_eq!(says("local v, p = kirin.json.decode(('['):rep(100000)) return tostring(v)"), "nil");
}

#[test]
fn text_is_escaped_and_digested() {
    assert_eq!(
        says(
            "assert(kirin.escape('<a href=\"x\">&\\'') == '&lt;a href=&quot;x&quot;&gt;&amp;&#39;')
             assert(kirin.escape('plain') == 'plain')
             assert(kirin.escape_url('a b/ä') == 'a%20b%2F%C3%A4' and kirin.unescape_url('a%20b%2') == 'a b%2')
             assert(kirin.hex(kirin.sha256('abc')):sub(1, 16) == 'ba7816bf8f01cfea')
             -- RFC 4231, test case 2
             assert(kirin.hex(kirin.hmac_sha256('Jefe', 'what do ya want for nothing?')):sub(1, 16) == '5bdcc146bf60754e')
             assert(kirin.base64('\\255\\254x') == '//54' and kirin.base64url('\\255\\254x') == '__54')
             assert(kirin.unbase64('//54') == '\\255\\254x' and kirin.unbase64('__54') == '\\255\\254x' and kirin.unbase64('!') == nil)
             assert(kirin.equals('abc', 'abc') and not kirin.equals('abc', 'abd') and not kirin.equals('abc', 'ab'))
             assert(#kirin.random(16) == 16 and kirin.random(16) ~= kirin.random(16))
             assert(math.abs(kirin.time() - os.time()) < 5)
             return 'well'"
        ),
        "well"
    );
}

#[test]
fn strings_work_as_in_lua() {
    assert_eq!(
        says(
            "assert(('hello world'):find('wor') == 7 and ('a.b'):find('.', 1, true) == 2 and ('abc'):find('b', -2) == 2)
             assert(select('#', ('abc'):find('(b)()')) == 4 and ('abc'):find('x') == nil)
             assert(('key=val'):match('(%w+)=(%w+)') == 'key' and ('abc'):match('^b') == nil and ('abc'):match('b', 2) == 'b')
             local words = {} for word in ('one two  three'):gmatch('%a+') do words[#words + 1] = word end
             assert(table.concat(words, ',') == 'one,two,three')
             for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do words[k] = v end
             assert(words.a == '1' and words.b == '2')
             assert(('hello'):gsub('l', 'L') == 'heLLo' and select(2, ('hello'):gsub('l', 'L')) == 2)
             assert(('hello'):gsub('', '-') == '-h-e-l-l-o-' and ('abc'):gsub('%w', '%0%0', 2) == 'aabbc')
             assert(('hello world'):gsub('(%w+) (%w+)', '%2 %1') == 'world hello' and ('abc'):gsub('^a', 'x') == 'xbc')
             assert(('$name is $what'):gsub('%$(%w+)', { name = 'Lua' }) == 'Lua is $what')
             assert(('abc'):gsub('%w', function(c) if c == 'b' then return '[' .. c .. ']' end end) == 'a[b]c')
             assert(('abc'):gsub('', function() return '-' end) == '-a-b-c-')
             assert(('aaa'):gsub('a', function() return 'b' end, 2) == 'bba' and ('aaa'):gsub('^a', { a = 'b' }) == 'baa')
             assert(('x'):rep(3) == 'xxx' and ('abc'):upper() == 'ABC' and ('%d'):format(5) == '5' and #'abc' == 3)
             local t = { 3, 1, 2 } table.sort(t) assert(table.concat(t) == '123')
             table.sort(t, function(a, b) return a > b end) assert(table.concat(t) == '321')
             assert(not pcall(string.gsub, 'x', '(', 'y') and not pcall(string.find, 'x', '[') and not pcall(string.gsub, 'x', 'x', '%9'))
             return 'well'"
        ),
        "well"
    );
}

#[test]
fn what_reaches_outside_is_not_there() {
    for name in [
        "io",
        "debug",
        "package",
        "ffi",
        "jit",
        "load",
        "loadstring",
        "loadfile",
        "dofile",
        "getfenv",
        "setfenv",
        "newproxy",
        "collectgarbage",
        "module",
        "gcinfo",
        "os.execute",
        "os.exit",
        "os.getenv",
        "os.remove",
        "os.rename",
        "os.tmpname",
        "os.setlocale",
        "string.dump",
    ] {
        assert_eq!(says(&format!("return tostring({name})")), "nil", "{name}");
    }
    assert_eq!(
        says(
            "return tostring(getmetatable('')) .. tostring(getmetatable(_G)) .. tostring(getmetatable(string))"
        ),
        "falsefalsefalse"
    );
}

#[test]
fn globals_and_libraries_cannot_be_changed() {
    for change in [
        "x = 1",
        "_G.x = 1",
        "rawset(_G, 'x', 1)",
        "string.x = 1",
        "rawset(string, 'x', 1)",
        "kirin.x = 1",
        "kirin.store.get = 1",
        "print = 1",
        "function helper() end",
        "setmetatable(_G, {})",
        "setmetatable(kirin, nil)",
    ] {
        assert_eq!(fault(Site::new().handler(change).call(get("/"), NOW)), Fault::Error, "{change}");
        assert_eq!(
            says(&format!("local ok = pcall(function() {change} end) return tostring(ok) .. tostring(x)")),
            "falsenil"
        );
    }
}

#[test]
fn what_modules_keep_stays_from_call_to_call() {
    let site = Site::new();
    site.write(
        "lib/counter.lua",
        "local count = 0 return { up = function() count = count + 1 return count end }",
    );
    site.write("lib/all/init.lua", "return { counter = require 'lib.counter', name = ... }");
    let script = site.handler(
        "local all = require 'lib.all' return all.counter.up() .. require('lib.counter').up() .. all.name",
    );
    assert_eq!(text(&answered(script.call(get("/"), NOW))), "12lib.all");
    assert_eq!(text(&answered(script.call(get("/"), NOW))), "34lib.all");
}

#[test]
fn modules_lie_below_the_script() {
    let site = Site::new();
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret.lua"), "return 'secret'").unwrap();
    std::os::unix::fs::symlink(outside.path(), site.directory.path().join("link")).unwrap();
    site.write("round.lua", "return require 'round'");
    site.write("code.lua", "\x1bLJ\x02");
    for name in ["../x", "/etc/passwd", "a..b", "", "link.secret", "none", "a/b", "round", "code", "a\\0b"] {
        assert_eq!(
            fault(site.handler(&format!("return require '{name}'")).call(get("/"), NOW)),
            Fault::Error,
            "{name}"
        );
    }
}

#[test]
fn a_script_that_does_not_load_says_where() {
    let site = Site::new();
    site.write("broken.lua", "local x =\n  = 1");
    for (source, place) in [
        ("return function(\n", "page.lua:"),
        ("\n\nerror('no')", "page.lua:3: no"),
        ("local x = nil\nreturn x.y", "page.lua:2: attempt to index"),
        ("return 5", "page.lua: it must return a function"),
        ("x = 1", "page.lua:1: assignment to global 'x'"),
        ("\nrequire 'broken'", "broken.lua:2: unexpected symbol"),
        ("\nrequire 'none'", "page.lua:2: require: there is no module `none`"),
        ("\x1bLJ\x02", "page.lua"),
    ] {
        let error = site.open(source).err().expect(source).to_string();
        assert!(error.contains(place), "{source:?}: {error}");
    }
}

#[test]
fn a_call_that_never_ends_is_ended() {
    let mut site = Site::new();
    site.limits.time = Duration::from_millis(50);
    for body in [
        "while true do end",
        "local function f() return f() end f()",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "local function f() while true do pcall(f) end end f()",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "local s = ('a'):rep(100) s:find('a-a-a-a-a-a-a-a-a-b')",
        "local s = ('a'):rep(100) s:gsub('a-a-a-a-a-a-a-a-a-b', '')",
        "local s = ('a'):rep(3000000) s:find('.-b')",
        "local s = ('a'):rep(3000000) for w in s:gmatch('.-b') do end",
        "local s = ('('):rep(3000000) s:match('%b()')  while true do s:match('%b()') end",
        "local t = {} for i = 1, 300000 do t[i] = -i % 1000 end while true do table.sort(t) end",
        "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) while true do pcall(function() return t[1] end) end",
        "local a = {} for i = 1, 25 do a = { a, a } end kirin.json.encode(a) while true do end",
        "local t t = setmetatable({}, { __tostring = function() return tostring(t) end }) return tostring(t)",
        "error(setmetatable({}, { __tostring = function(t) while true do end end }))",
        "repeat local s = ('x'):rep(1000000) .. 'y' until false",
        "local t = {} for i = 1, 100000 do t[i] = true end for k in pairs(t) do t[k] = nil end while true do next(t) end",
    ] {
        let script = site.handler(body);
        let before = std::time::Instant::now();
        let fault = fault(script.call(get("/"), NOW));
        assert!(matches!(fault, Fault::Time), "{body}: {fault:?}");
        // No timing: for who reads the output.
        println!("{:?} {body}", before.elapsed());
    }
}

#[test]
fn a_script_that_eats_memory_is_ended_and_the_next_call_is_served() {
    let site = Site::new();
    let script = site.open(
        "local kept = {}
         local bombs = {
           rep = function() return ('x'):rep(1e9) end,
           keep = function() while true do kept[#kept + 1] = ('x'):rep(1000) .. #kept end end,
           double = function() local s = 'x' while true do s = s .. s end end,
           table = function() local t = {} for i = 1, 1e9 do t[i] = i end end,
           concat = function() local t = {} for i = 1, 100000 do t[i] = ('x'):rep(1000) end return table.concat(t) end,
           gsub = function() return (('x'):rep(1e6):gsub('x', ('y'):rep(1000))) end,
           coroutines = function() local function f() local c = coroutine.create(f) kept[#kept + 1] = c return coroutine.resume(c) end
             while true do f() end end,
           caught = function() while true do if not pcall(function() kept[#kept + 1] = ('x'):rep(1e6) .. #kept end) then error('full') end end end,
           body = function() local s, t = ('x'):rep(1e6), {} for i = 1, 1e5 do t[i] = s end return { body = t } end,
           json = function() local a = {} for i = 1, 30 do a = { a, a } end return kirin.json.encode(a) end,
         }
         return function(request) local bomb = bombs[request.args.bomb] if bomb then return bomb() end return 'alive' end",
    );
    let script = script.unwrap();
    for bomb in ["rep", "keep", "double", "table", "concat", "gsub", "coroutines", "caught", "body", "json"] {
        let fault = fault(script.call(get(&format!("/?bomb={bomb}")), NOW));
        // Some take their time before.
        println!("{bomb}: {fault:?}");
        assert_eq!(text(&answered(script.call(get("/"), NOW))), "alive", "after {bomb}");
    }
}

#[test]
fn deep_recursion_is_an_error_and_no_crash() {
    for body in [
        "local function f() return 1 + f() end f()",
        "local function f() return (('x'):gsub('x', f)) end f()",
        "local function f() local t = { 3, 2, 1 } table.sort(t, f) end f()",
        "local t t = setmetatable({}, { __tostring = function() return ('%s'):format(t) end }) return tostring(t)",
        "local t t = setmetatable({}, { __lt = function() table.sort { t, t } return true end }) table.sort { t, t }",
        "local function f() return coroutine.wrap(f)() end f()",
        "local function f() local c = coroutine.create(f) assert(coroutine.resume(c)) end f()",
        "local t = {} for i = 1, 200 do t = { t } end kirin.json.encode(t)",
        "return ('x'):rep(1000):find(('x?'):rep(1000))",
        "return ('x'):find(('('):rep(100))",
        "local f f = function() for w in ('x'):gmatch('x') do f() end end f()",
        "return unpack({}, 1, 1e7)",
        "local function f(...) return f(1, ...) end f()",
        "kirin.json.encode(setmetatable({}, { __index = function(t, k) return t[k] end }).x)",
    ] {
        let fault = fault(Site::new().handler(body).call(get("/"), NOW));
        assert!(matches!(fault, Fault::Error | Fault::Memory), "{body}: {fault:?}");
    }
}

#[test]
fn a_body_is_waited_for_once() {
    let site = Site::new();
    let script = site.handler("local a = request:form() return a.x .. #request:body() .. request:json_or()");
    drop(script);
    let script =
        site.handler("local form = request:form() return form.x .. #request:body() .. request:body()");
    let called = called(Method::POST, "/", &[], BodyLength::Exact(5));
    let Step::Waiting(mut suspended) = script.call(called, NOW) else { panic!("does not wait") };
    assert!(matches!(suspended.wanted(), Some(Wanted::Body)));
    let response = answered(suspended.resume(Supply::Body(Bytes::from_static(b"x=1+2")), NOW));
    assert_eq!(text(&response), "1 25x=1+2");
}

fn fetched(body: &str) -> Fetched {
    let mut fields = FieldLines::new();
    fields.push("Content-Type", "text/plain");
    fields.push("Set-Cookie", "a=1");
    fields.push("Set-Cookie", "b=2");
    Fetched { status: StatusCode::ACCEPTED, fields, body: Bytes::copy_from_slice(body.as_bytes()) }
}

#[test]
fn subrequests_are_waited_for_even_inside_of_coroutines_and_protected_calls() {
    let site = Site::new();
    for body in [
        "local r = kirin.fetch('/a?b', { method = 'PUT', headers = { ['X-A'] = '1' }, body = 'sent' })
         return r.status .. r.headers['content-type'] .. r.headers['set-cookie'][2] .. r.body",
        "local ok, r = pcall(kirin.fetch, '/a?b', { method = 'PUT', headers = { ['X-A'] = '1' }, body = 'sent' })
         return r.status .. r.headers['content-type'] .. r.headers['set-cookie'][2] .. r.body",
        "local inner = coroutine.wrap(function()
           coroutine.yield('first')
           local r = coroutine.wrap(function() return kirin.fetch('/a?b', { method = 'PUT', headers = { ['X-A'] = '1' }, body = 'sent' }) end)()
           coroutine.yield(r.status .. r.headers['content-type'] .. r.headers['set-cookie'][2] .. r.body)
         end)
         assert(inner() == 'first') return inner()",
        "return (('x'):gsub('x', function() local r = kirin.fetch('/a?b', { method = 'PUT', headers = { ['X-A'] = '1' }, body = 'sent' })
           return r.status .. r.headers['content-type'] .. r.headers['set-cookie'][2] .. r.body end))",
        "local function walk() local r = kirin.fetch('/a?b', { method = 'PUT', headers = { ['X-A'] = '1' }, body = 'sent' })
           return r.status .. r.headers['content-type'] .. r.headers['set-cookie'][2] .. r.body end
         for s in walk do return s end",
    ] {
        let script = site.handler(body);
        let Step::Waiting(mut suspended) = script.call(get("/"), NOW) else { panic!("does not wait: {body}") };
        let Some(Wanted::Fetches(fetches)) = suspended.wanted() else { panic!("waits for something else") };
        let [fetch] = &fetches[..] else { panic!("{fetches:?}") };
        assert_eq!((fetch.method.as_str(), fetch.target.as_str(), &fetch.body[..]), ("PUT", "/a?b", &b"sent"[..]));
        assert_eq!(fetch.fields, [("x-a".to_owned(), b"1".to_vec())]);
        let response = answered(suspended.resume(Supply::Fetched(vec![fetched("body")]), NOW));
        assert_eq!(text(&response), "202text/plainb=2body", "{body}");
    }
}

#[test]
fn several_are_asked_at_once_and_answered_in_order() {
    let site = Site::new();
    let script = site.handler(
        "local all = kirin.fetch_all { '/1', { '/2', method = 'HEAD' }, '/3' }
         return all[1].body .. all[2].body .. all[3].body .. #kirin.fetch_all {}",
    );
    let Step::Waiting(mut suspended) = script.call(get("/"), NOW) else { panic!("does not wait") };
    let Some(Wanted::Fetches(fetches)) = suspended.wanted() else { panic!("waits for something else") };
    let targets: Vec<_> = fetches.iter().map(|fetch| format!("{} {}", fetch.method, fetch.target)).collect();
    assert_eq!(targets, ["GET /1", "HEAD /2", "GET /3"]);
    let supply = Supply::Fetched(["a", "b", "c"].map(fetched).to_vec());
    assert_eq!(text(&answered(suspended.resume(supply, NOW))), "abc0");
}

#[test]
fn a_refused_subrequest_is_an_error_with_its_place() {
    let site = Site::new();
    let script = site.handler("local ok, problem = pcall(kirin.fetch, '/x') return problem");
    let Step::Waiting(suspended) = script.call(get("/"), NOW) else { panic!("does not wait") };
    let response = answered(suspended.resume(Supply::Refused("too deep".into()), NOW));
    assert!(text(&response).contains("too deep"), "{}", text(&response));
    for target in ["x", "http://other/", "/a b", "", "/\\r\\n", "//\\0"] {
        let body = format!("return kirin.fetch('{target}')");
        assert_eq!(fault(site.handler(&body).call(get("/"), NOW)), Fault::Error, "{target}");
    }
    let many = "local t = {} for i = 1, 65 do t[i] = '/' end return kirin.fetch_all(t)";
    assert_eq!(fault(site.handler(many).call(get("/"), NOW)), Fault::Error);
}

#[test]
fn calls_that_wait_do_not_see_each_other() {
    let site = Site::new();
    let script = site.handler(
        "local mine = request.args.n
         local r = kirin.fetch('/' .. mine)
         return mine .. r.body .. request.args.n .. request.host",
    );
    let mut waiting: Vec<_> = (0..50)
        .map(|n| match script.call(get(&format!("/?n={n}")), NOW) {
            Step::Waiting(suspended) => (n, suspended),
            _ => panic!("does not wait"),
        })
        .collect();
    waiting.reverse();
    for (n, suspended) in waiting {
        let supply = Supply::Fetched(vec![fetched(&format!("-{n}-"))]);
        assert_eq!(text(&answered(suspended.resume(supply, NOW))), format!("{n}-{n}-{n}site.test"));
    }
}

#[test]
fn a_call_that_is_given_up_while_it_waits_leaves_nothing() {
    let site = Site::new();
    let script = site.handler("kirin.fetch('/') return 'x'");
    for _ in 0..10_000 {
        assert!(matches!(script.call(get("/"), NOW), Step::Waiting(_)));
    }
}

#[test]
fn a_changed_script_is_loaded_and_a_broken_one_is_not() {
    let site = Site::new();
    site.write("lib.lua", "return 'a'");
    let script = site.open("local lib = require 'lib' return function() return lib .. 1 end").unwrap();
    let ask = |second| text(&answered(script.call(get("/"), NOW.plus_seconds(second))));
    assert_eq!(ask(1), "a1");
    site.write("lib.lua", "return 'bb'");
    assert_eq!(ask(1), "a1", "looked at once a second");
    assert_eq!(ask(2), "bb1");
    site.write("page.lua", "return function( 'broken'");
    assert_eq!(ask(3), "bb1");
    site.write("page.lua", "local other = require 'other' return function() return other end");
    assert_eq!(ask(4), "bb1");
    site.write("other.lua", "return 'new'");
    assert_eq!(ask(5), "new");
    std::fs::remove_file(site.directory.path().join("page.lua")).unwrap();
    assert_eq!(ask(6), "new");
}

#[test]
fn a_call_goes_on_in_its_version_when_the_script_changes_meanwhile() {
    let site = Site::new();
    let script = site.handler("return kirin.fetch('/').body .. 'old'");
    let Step::Waiting(suspended) = script.call(get("/"), NOW) else { panic!("does not wait") };
    site.write("page.lua", "return function() return 'the new version' end");
    assert_eq!(text(&answered(script.call(get("/"), NOW.plus_seconds(1)))), "the new version");
    assert_eq!(text(&answered(suspended.resume(Supply::Fetched(vec![fetched("x")]), NOW))), "xold");
}
