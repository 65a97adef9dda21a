//! What scripts get and give: requests, responses, the store, JSON, text.

use hmac::{Hmac, KeyInit, Mac};
use kirin_http::request::BodyLength;
use kirin_http::{Body, Method, StatusCode};
use kirin_lua::{CallOutcome, Fault};
use kirin_store::NewItem;
use sha2::{Digest, Sha256};

use crate::support::{NOW, Site, answered, bytes, called, fault, get, says, text};

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
    let fields: Vec<_> = response
        .fields
        .iter()
        .filter(|(name, _)| *name == b"Set-Cookie")
        .map(|(_, value)| value)
        .collect();
    assert_eq!(fields, [b"a=1", b"b=2"]);
    assert_eq!(response.fields.get("x-n"), Some(&b"7"[..]));
}

#[test]
fn nil_and_pass_leave_the_request_to_the_next_place() {
    for body in ["", "return nil", "return kirin.pass()"] {
        assert!(
            matches!(Site::new().handler(body).call(get("/"), NOW), CallOutcome::Passed),
            "{body}"
        );
    }
}

#[test]
fn an_impossible_response_is_an_error() {
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
fn a_request_has_all_its_fields() {
    let site = Site::new();
    let script = site.handler(
        "local r = request
         return table.concat({ r.method, r.target, r.path, r.query, r.args.a, r.args.b, r.headers['X-One'], r.headers['x-one'],
           r.headers['X-Two'], r.cookies.sid, r.cookies.other, r.remote_addr, r.scheme, r.host, r.version, tostring(r.user),
           tostring(r.headers.none), tostring(r.session), r:body() }, '|')",
    );
    let fields = [
        ("x-ONE", "1"),
        ("X-Two", "2"),
        ("x-two", "3"),
        ("Cookie", "sid=a%20b; other=\"q\"; sid=second"),
    ];
    let called = called(Method::GET, "/p?a=1&b=x+y%21&a=2", &fields, BodyLength::None);
    assert_eq!(
        text(&answered(script.call(called, NOW))),
        "GET|/p?a=1&b=x+y%21&a=2|/p|a=1&b=x+y%21&a=2|2|x y!|1|1|2, 3|a b|q|192.0.2.7|https|site.test|HTTP/1.1|nil|nil|nil|"
    );
}

#[test]
fn a_script_can_use_the_store() {
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
fn json_is_encoded_and_decoded() {
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
fn a_value_that_json_does_not_have_is_an_error() {
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
    for text in
        ["", "{", "[1,]", "{a:1}", "nul", "1 2", "'x'", "\"\\255\"", "\\0", "[01]", "\"\\n\""]
    {
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
fn long_values_work_as_short_ones() {
    let site = Site::new();
    // Slices of long texts meet within a character, an escape, `</` and a group of base64.
    for length in [65_535, 65_537, 131_073] {
        let script = site.open(&format!(
            "local k, x = kirin, ('x'):rep({length})
             local function same(a, b) assert(a == b) end
             return function()
               for _, text in ipairs {{ x .. '<</>&', x .. '\\195\\169\\195\\169', ('<'):rep({length}) .. '/' }} do
                 same(k.json.decode(k.json.encode(text)), text)
                 assert(not k.json.encode(text):find('</', 1, true))
                 same(k.unescape_url(k.escape_url(text)), text)
                 same(k.unbase64(k.base64(text)), text)
                 same(k.unbase64(k.base64url(text)), text)
                 same(#k.hex(text), 2 * #text)
                 same(k.escape(text):gsub('&lt;', '<'):gsub('&gt;', '>'):gsub('&amp;', '&'), text)
                 assert(k.equals(text, text .. '') and not k.equals(text, text:sub(1, -2) .. '?'))
                 same(text:find(text:sub(-5), 1, true), #text - 4)
                 same((text:gsub('.*', '%0%0', 1)), text .. text)
               end
               assert(k.unbase64(('AA=='):rep({length})) == nil)
               same(k.hex(k.sha256(x)):sub(1, 8), k.hex(k.sha256(x .. '')):sub(1, 8))
               return k.hex(k.sha256(x)) .. k.hex(k.hmac_sha256(x, x))
             end"
        ));
        let said = text(&answered(script.unwrap().call(get("/"), NOW)));
        let bytes = "x".repeat(length);
        let digest = Sha256::digest(&bytes);
        let mut mac = Hmac::<Sha256>::new_from_slice(bytes.as_bytes()).unwrap();
        mac.update(bytes.as_bytes());
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(said, hex(&digest) + &hex(&mac.finalize().into_bytes()), "{length}");
    }
}

#[test]
fn the_size_of_a_response_and_a_fetch_is_bounded() {
    let mut site = Site::new();
    site.limits.memory_bytes = 16 << 20;
    for body in [
        "local h = {} for i = 1, 300 do h['X-' .. i] = ('v'):rep(1000) end return { headers = h }",
        "return (('x'):rep(1000000):gsub('.*', ('%0'):rep(1000)))",
        "return kirin.escape(('\"'):rep(4000000))",
        "kirin.fetch('/' .. ('x'):rep(100000))",
        "kirin.fetch('/', { headers = { a = ('x'):rep(100000) } })",
        "local all = {} for i = 1, 65 do all[i] = '/' end kirin.fetch_all(all)",
        "local all, one = {}, { '/', body = ('x'):rep(1000000) } for i = 1, 64 do all[i] = one end kirin.fetch_all(all)",
        "table.insert({}, -2147483648, 1)",
        "return os.date(('%c'):rep(100000))",
        "return ('x'):find(('[x]'):rep(100000))",
        "error(('x'):rep(4000000))",
        "return { headers = { ['X-A'] = 'a\\r\\nSet-Cookie: b' } }",
        "return { headers = { ['X-A\\r\\n'] = 'a' } }",
        "return { headers = { ['X-A'] = 'a\\0b' } }",
        "return kirin.redirect('/\\r\\nX: y')",
        "return { status = 99 }",
        "return { status = 101 }",
        "return { status = 600 }",
        "return { status = -1 }",
    ] {
        let step = site.handler(body).call(get("/"), NOW);
        assert!(matches!(step, CallOutcome::Failed(Fault::Error | Fault::Memory)), "{body}");
    }
}
