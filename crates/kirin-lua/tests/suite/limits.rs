//! Scripts that take too much time, memory or stack.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kirin_lua::{Called, Fault, Host, ScriptFile, VisitorSession};
use kirin_origin::NearStore;
use kirin_store::Now;

use crate::support::{NOW, Site, answered, fault, get, text};

#[test]
fn a_call_that_never_ends_is_ended() {
    let mut site = Site::new();
    site.limits.time = Duration::from_millis(50);
    for body in [
        "while true do end",
        "repeat until false",
        "for i = 1, math.huge do end",
        "::again:: goto again",
        "local n = 0 ::again:: n = n + 1 if n > 0 then goto again end",
        "local n = 0 while true do for i = 1, 100 do n = n + i % 7 end end",
        "for _ in function() return 1 end do end",
        "local function f() return f() end f()",
        "local function a() return pcall(a) end while true do a() end",
        "while true do pcall(function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "local function f() while true do pcall(f) end end f()",
        "coroutine.wrap(function() while true do end end)()",
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "while true do pcall(error) end",
        "local f = coroutine.wrap(function() while true do coroutine.yield() end end) while true do f() end",
        "local t = setmetatable({}, { __index = function() while true do end end }) return t.x",
        "local t = setmetatable({}, { __index = function(t, k) return k end }) while true do local x = t[1] end",
        "local t = setmetatable({}, { __add = function(a) return a end }) while true do t = t + t end",
        "local t = setmetatable({}, { __call = function(t) return t() end }) t()",
        "local s = ('a'):rep(60) while true do s:find('a+b') s:match('(a+)b') s:gsub('a', 'b') end",
        "local s = ('a'):rep(60) while true do for w in s:gmatch('a+b') do end end",
        "local s = '' while true do s = (s .. 'x'):sub(-50000) end",
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
        "local s = ('x'):rep(3000000) while true do s:reverse() s:upper() end",
        "while true do local s = ('x'):rep(3000000) end",
        "local s = ('<'):rep(1000000) while true do kirin.escape(s) end",
        "local s = ('x'):rep(3e6) while true do local t = s .. '1' t = s .. '2' t = s .. '3' t = s .. '4' t = s .. '5' end",
        "local t = {} for i = 1, 500000 do t[i] = i + 0.5 end while true do table.concat(t) end",
        "local t = {} for i = 1, 500000 do t[i] = i end while true do table.insert(t, 1, 0) end",
        "local t = {} for i = 1, 500000 do t[i] = i end while true do t[#t + 1] = table.remove(t, 1) end",
        "local t = {} for i = 1, 500000 do t[i] = i end while true do table.sort(t, rawequal) end",
        "local s = ('x'):rep(8e6) while true do kirin.sha256(s) end",
        "local s = ('x'):rep(8e6) while true do kirin.equals(s, s) end",
        "local s = ('x'):rep(8e6) while true do s:find('((((((((((.*))))))))))') end",
        "local s = kirin.json.encode(('x'):rep(8e6)) while true do kirin.json.decode(s) end",
        "local s = ('['):rep(100) .. (']'):rep(100) s = '[' .. (s .. ','):rep(20000) .. '0]' while true do kirin.json.decode(s) end",
        "local s = ('1'):rep(1e6) while true do tonumber(s) s:format() end",
        "local t = {} for i = 1, 100000 do t[i] = true end for k in pairs(t) do t[k] = nil end while true do next(t) end",
    ] {
        let script = site.handler(body);
        let before = std::time::Instant::now();
        let fault = fault(script.call(get("/"), NOW));
        assert!(matches!(fault, Fault::Time), "{body}: {fault:?}");
        // The output only shows the times. The test does not depend on them.
        println!("{:?} {body}", before.elapsed());
    }
}

#[test]
fn a_loop_that_catches_stack_overflows_is_ended() {
    let mut site = Site::new();
    site.limits.time = Duration::from_millis(10);
    // Where the stack ends within the loop decides whether the interpreter has room to call its
    // hook.
    for depth in 0..40 {
        let script = site.handler(&format!(
            "local function f() while true do pcall(f) end end
             local function deep(n) if n == 0 then return f() end return 1 + deep(n - 1) end
             deep({depth})"
        ));
        assert_eq!(fault(script.call(get("/"), NOW)), Fault::Time, "{depth}");
    }
}

#[test]
fn a_script_that_uses_up_memory_is_ended_and_the_next_call_is_served() {
    let site = Site::new();
    let script = site.open(
        "local kept = {}
         local bombs = {
           rep = function() return ('x'):rep(1e9) end,
           keep = function() while true do kept[#kept + 1] = ('x'):rep(1000) .. #kept end end,
           double = function() local s = 'x' while true do s = s .. s end end,
           grow = function() local t = {} while true do t = { t } end end,
           closures = function() local f while true do local g = f f = function() return g end end end,
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
    for bomb in [
        "rep",
        "keep",
        "double",
        "grow",
        "closures",
        "table",
        "concat",
        "gsub",
        "coroutines",
        "caught",
        "body",
        "json",
    ] {
        let fault = fault(script.call(get(&format!("/?bomb={bomb}")), NOW));
        // Some take their time before.
        println!("{bomb}: {fault:?}");
        assert_eq!(text(&answered(script.call(get("/"), NOW))), "alive", "after {bomb}");
    }
}

#[test]
fn memory_that_runs_out_in_a_short_function_is_an_error_and_not_a_panic() {
    let mut site = Site::new();
    site.limits.memory_bytes = 4 << 20;
    // On a machine that is busy, memory should run out first.
    site.limits.time = Duration::from_secs(60);
    // Which step finds the memory full depends on the sizes.
    for length in (20_000..60_000).step_by(500) {
        for make in ["text:sub(i)", "text:sub(i):upper()", "text:sub(i):reverse() .. i"] {
            let script = site.handler(&format!(
                "local text, kept = ('abcde'):rep({length} / 5), {{}}
                 local function keep(i) kept[i] = {make} end
                 for i = 1, {length} do keep(i) end"
            ));
            assert_eq!(fault(script.call(get("/"), NOW)), Fault::Memory, "{length} {make}");
        }
    }
}

#[test]
fn deep_recursion_is_an_error_and_not_a_crash() {
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
        let mut site = Site::new();
        // A busy machine must not end it before.
        site.limits.time = Duration::from_secs(3600);
        let fault = fault(site.handler(body).call(get("/"), NOW));
        assert!(matches!(fault, Fault::Error | Fault::Memory), "{body}: {fault:?}");
    }
}

/// A program with a fault of its own.
struct Panicking;

impl Host for Panicking {
    fn session(&self, _: &Called, _: Now) -> VisitorSession {
        panic!("meant to happen: a function that a script calls panics")
    }
}

#[test]
fn a_panic_in_a_function_ends_only_its_call() {
    let site = Site::new();
    let path = site.write(
        "page.lua",
        "return function(request) if request.path == '/x' then return request.session end return 'alive' end",
    );
    let script = ScriptFile::open(
        path,
        NearStore::new(Arc::clone(&site.store), None),
        Rc::new(Panicking),
        site.limits,
    )
    .unwrap();
    for _ in 0..2 {
        assert_eq!(fault(script.call(get("/x"), NOW)), Fault::Error);
        assert_eq!(text(&answered(script.call(get("/"), NOW))), "alive");
    }
}
