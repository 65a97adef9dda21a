//! What scripts cannot reach, and what they can load.

use kirin_lua::Fault;
use tempfile::TempDir;

use crate::support::{NOW, Site, answered, fault, get, says, text};

#[test]
fn functions_that_reach_outside_do_not_exist() {
    for name in [
        "io",
        "debug",
        "package",
        "ffi",
        "jit",
        "jit and jit.on",
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
        "table.insert(_G, 'x')",
        "table.insert(_G, 1, 'x')",
        "table.insert(string, 'x')",
        "table.insert(kirin.store, 'x')",
        "table.sort(_G)",
        "table.remove(_G)",
        "rawset(_G, 1, 'x')",
        "rawset(kirin.json, 'decode', print)",
        "kirin.json.array(_G)",
        "kirin.json.array(kirin)",
        "kirin.json.array(request)",
        "kirin.json.array(request.headers)",
        "setmetatable(string, { __index = error })",
        "setmetatable(request, nil)",
        "string.format.x = 1",
        "('').x = 1",
    ] {
        assert_eq!(
            fault(Site::new().handler(change).call(get("/"), NOW)),
            Fault::Error,
            "{change}"
        );
        assert_eq!(
            says(&format!(
                "local ok = pcall(function() {change} end) return tostring(ok) .. tostring(x)"
            )),
            "falsenil"
        );
    }
}

#[test]
fn changes_by_one_call_are_not_visible_to_the_next() {
    let site = Site::new();
    let script = site.open(
        "local tables = { '_G', 'string', 'table', 'math', 'os', 'bit', 'coroutine', 'kirin' }
         return function(request)
           local seen = {}
           for _, name in ipairs(tables) do
             local t = name == '_G' and _G or _G[name]
             for _, change in ipairs {
               function() t[1] = 'left' end, function() t.left = 'left' end, function() rawset(t, 1, 'left') end,
               function() table.insert(t, 'left') end, function() table.insert(t, 1, 'left') end,
               function() setmetatable(t, { __index = function() return 'left' end }) end,
               function() getmetatable(t).__index = function() return 'left' end end,
               function() kirin.json.array(t) end, function() table.sort(t) end,
               function() for key in pairs(t) do t[key] = nil end end,
               function() local key = next(t) t[key] = nil end,
             } do pcall(change) end
             seen[#seen + 1] = tostring(t[1]) .. tostring(t.left)
           end
           return table.concat(seen) .. tostring(left) .. type(string.format) .. tostring(getmetatable(''))
         end",
    );
    let script = script.unwrap();
    let untouched = "nil".repeat(8 * 2 + 1) + "functionfalse";
    for _ in 0..2 {
        assert_eq!(text(&answered(script.call(get("/"), NOW))), untouched);
    }
}

#[test]
fn libraries_that_are_not_made_for_kirin_work() {
    for (body, answer) in [
        ("return tostring(rawget(_G, 'utf8'))", "nil"),
        ("local mine = setmetatable({}, { __index = string }) return mine.rep('x', 3)", "xxx"),
        ("local env = setmetatable({}, { __index = _G }) return env.tostring(5)", "5"),
        ("local format = _G.string.format return format('%d', 5)", "5"),
        (
            "return table.concat({ 1, 2, 3 }, '-', 2) .. table.concat({ 1, 2, 3 }, ',', 1, 2)",
            "2-31,2",
        ),
        (
            "local t = { 1, 2 } table.insert(t, 1, 0) table.insert(t, 3) return table.concat(t)",
            "0123",
        ),
        ("local t = {} for i = 1, 10000 do t[i] = i end return #table.concat(t, ',')", "48893"),
        (
            "local t = {} for i = 1, 9000 do t[i] = i end return table.concat(t, '', 8999)",
            "89999000",
        ),
        (
            "local t = {} for i = 1, 9000 do t[i] = i % 7 end table.sort(t, function(a, b) return a > b end) return t[1]",
            "6",
        ),
        (
            "return tostring(tonumber('0x10')) .. tonumber('77', 8) .. tostring(tonumber('x'))",
            "1663nil",
        ),
        ("return #os.date() > 5 and os.date('%Y', 0) or 'no'", "1970"),
    ] {
        assert_eq!(says(body), answer, "{body}");
    }
}

#[test]
fn short_and_long_texts_have_the_same_functions() {
    // Lua's own functions search short texts, and Kirin's the others.
    for (body, answer) in [
        ("return table.concat({ ('a=b' .. more):find('(%w)=(%w)') }, ',')", "1,3,a,b"),
        ("return table.concat({ ('a=b' .. more):find('=', 1, true) }, ',')", "2,2"),
        ("return tostring(('a=b ' .. more):find('%w', -1))", "nil"),
        ("return ('a=b' .. more):match('=(.)')", "b"),
        ("return ('a=b' .. more):match('()=')", "2"),
        (
            "local t = {} for k in ('a=b' .. more):gmatch('%w') do t[#t + 1] = k end return table.concat(t, ',')",
            "a,b",
        ),
        (
            "return (('<&>' .. more):gsub('[<&>]', { ['<'] = '(', ['>'] = 1, ['&'] = false }):sub(1, 3))",
            "(&1",
        ),
        ("return (('a.b' .. more):gsub('%.', '!'):sub(1, 3))", "a!b"),
        ("return (('a.b' .. more):gsub('(%w)', '%1'):sub(1, 3))", "a.b"),
        ("return (('aaa' .. more):gsub('a', 'b', 2):sub(1, 3))", "bba"),
        ("return tostring(select(2, ('aaa' .. more):gsub('a', '')))", "3"),
        (
            "return (('ab' .. more):gsub('a', setmetatable({}, { __index = function() return 'x' end })):sub(1, 2))",
            "xb",
        ),
        ("return tostring(pcall(string.find, 'a' .. more, '[a'))", "false"),
        ("return tostring(pcall(string.gsub, 'a' .. more, 'a', { a = {} }))", "false"),
        ("return ('a\\0b' .. more):match('a%z(b)')", "b"),
        ("return tostring(('a\\0b' .. more):match('a\\0c'))", "nil"),
    ] {
        for more in ["''", "(' '):rep(5000)"] {
            assert_eq!(says(&format!("local more = {more} {body}")), answer, "{more} {body}");
        }
    }
}

#[test]
fn a_first_line_with_a_number_sign_is_no_code() {
    let site = Site::new();
    let script = site.open("#!/usr/bin/env kirin while\nreturn function() error('here') end").err();
    assert!(
        script.is_none() || script.is_some_and(|error| error.to_string().contains("page.lua:1"))
    );
}

#[test]
fn two_states_do_not_draw_the_same_random_numbers() {
    let draw = "return math.random() .. ' ' .. math.random()";
    assert_ne!(says(draw), says(draw));
}

#[test]
fn local_variables_of_modules_stay_from_call_to_call() {
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
    for name in
        ["../x", "/etc/passwd", "a..b", "", "link.secret", "none", "a/b", "round", "code", "a\\0b"]
    {
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
fn a_changed_script_is_loaded_and_a_broken_one_is_not() {
    let site = Site::new();
    site.write("lib.lua", "return 'a'");
    let script =
        site.open("local lib = require 'lib' return function() return lib .. 1 end").unwrap();
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
fn no_request_can_change_values_that_all_requests_share() {
    for what in ["request", "request.headers", "kirin", "''", "_G"] {
        let body = format!("return tostring(getmetatable({what}))");
        assert_eq!(says(&body), "false", "{what}");
    }
}
