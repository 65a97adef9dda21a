//! Scripts as places of routes, through the built program.

use kirin_tests::scripts::{CONFIG, PATIENT, handler, memcached, serve, serve_script};
use kirin_tests::{Client, Kirin, Site, wait_for};

#[test]
fn a_script_answers_from_the_store_that_memcached_clients_see() {
    let (site, kirin) = serve_script(&handler(
        "local count = kirin.store.incr('visits', 1, { initial = 1 })
         local name = kirin.store.get('name') or 'nobody'
         kirin.store.set('seen', '\\0\\r\\n\\255' .. request.path, 60)
         return { headers = { ['X-Count'] = count }, body = { '<p>', kirin.escape(name), '</p>' } }",
    ));
    memcached(&site).set("name", b"A&B");
    let mut client = kirin.connect();
    for count in ["1", "2"] {
        let reply = client.get("/x");
        assert_eq!(
            (reply.status, reply.text().as_str(), reply.field("x-count")),
            (200, "<p>A&amp;B</p>", Some(count))
        );
        assert_eq!(reply.field("content-type"), Some("text/html; charset=utf-8"));
    }
    assert_eq!(memcached(&site).get("seen").unwrap(), b"\0\r\n\xff/x");
    assert_eq!(memcached(&site).get("visits").unwrap(), b"2");
    let log = wait_for("the access log", || {
        std::fs::read_to_string(site.path("access.log")).ok().filter(|log| log.lines().count() >= 2)
    });
    assert!(log.contains(" lua "), "{log}");
}

#[test]
fn head_gets_the_head_and_the_script_sees_all_methods() {
    let (_site, kirin) = serve_script(&handler("return { status = 200, body = request.method }"));
    let mut client = kirin.connect();
    let head = client.request("HEAD", "/", "");
    assert_eq!((head.status, head.field("content-length")), (200, Some("4")));
    assert_eq!(client.request("DELETE", "/", "").text(), "DELETE");
    assert_eq!(client.get("/").text(), "GET");
}

#[test]
fn binary_bodies_go_in_and_out_in_every_framing() {
    let (_site, kirin) = serve_script(&handler(
        "local body = request:body()
         return { headers = { ['Content-Type'] = 'application/octet-stream' }, body = { body, body } }",
    ));
    let body: Vec<u8> = (0..300_000u32).map(|n| (n * 7 % 256) as u8).collect();
    let mut client = kirin.connect();
    let reply = client.post("/", "application/octet-stream", &body);
    assert!(reply.status == 200 && reply.body == [&body[..], &body[..]].concat());
    client.send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\0b\r\n");
    client.send("2\r\ncd\r\n0\r\n\r\n");
    assert_eq!(client.read_reply().body, b"a\0bcda\0bcd");
    assert_eq!(client.request("POST", "/", "Content-Length: 0\r\n").body, b"");
    assert_eq!(client.get("/").body, b"");
}

#[test]
fn a_body_above_the_limit_is_refused() {
    let site = Site::new().with("page.lua", handler("return #request:body() .. ''"));
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}body_limit = \"2KB\"\n[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n\
             [[route]]\npath = \"/small\"\nbody_limit = \"10B\"\ntry = [\"lua:page.lua\"]\n"
        ),
    );
    for (path, length, status) in
        [("/", 2048, 200), ("/", 2049, 413), ("/small", 10, 200), ("/small", 11, 413)]
    {
        assert_eq!(
            kirin.connect().post(path, "text/plain", &vec![b'x'; length]).status,
            status,
            "{path} {length}"
        );
    }
}

#[test]
fn an_error_is_logged_with_its_line_and_not_shown() {
    let (_site, kirin) = serve_script(
        "local function inner(request)\n  local secret = nil\n  return secret.field\nend\n\
         return function(request)\n  if request.path == '/thrown' then error('thrown by hand') end\n\
         if request.path == '/json' then\n local text = kirin.json.encode(print) end\n\
         if request.path == '/table' then error({}) end\n  return inner(request)\nend",
    );
    let mut client = kirin.connect();
    for (path, logged) in [
        ("/", "page.lua:3: attempt to index local 'secret' (a nil value)"),
        ("/thrown", "page.lua:6: thrown by hand"),
        ("/json", "page.lua:8: JSON has no function"),
        ("/table", "page.lua:9: table"),
    ] {
        let reply = client.get(path);
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (500, "500 Internal Server Error\n"),
            "{path}"
        );
        kirin.wait_for_log(logged);
    }
}

#[test]
fn a_loop_without_end_is_ended_and_others_are_served() {
    let site = Site::new().with(
        "page.lua",
        "return function(request)
           if request.path == '/forever' then while true do pcall(function() while true do end end) end end
           if request.path == '/pattern' then return (('a'):rep(1000):find('a-a-a-a-a-a-a-a-b')) end
           return 'alive'
         end",
    );
    let kirin = serve(
        &site,
        "[lua]\ntime_limit = \"300ms\"\n[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n",
    );
    for path in ["/forever", "/pattern"] {
        assert_eq!(kirin.get(path).status, 504, "{path}");
        assert_eq!(kirin.get("/").text(), "alive");
    }
    kirin.wait_for_log("page.lua:2: the time limit is reached");
    kirin.wait_for_log("page.lua:3: the time limit is reached");
}

#[test]
fn expensive_values_end_only_their_own_call() {
    let site = Site::new().with(
        "page.lua",
        "local kept = {}
         local bombs = {
           rep = function() return ('x'):rep(1e9) end,
           keep = function() while true do kept[#kept + 1] = ('x'):rep(1000) .. #kept end end,
           deep = function() local function f() return 1 + f() end return f() end,
           gsub = function() local function f() return (('x'):gsub('x', f)) end return f() end,
           sort = function() local function f() table.sort({ 3, 2, 1 }, f) end return f() end,
           text = function() local t t = setmetatable({}, { __tostring = function() return ('%s'):format(t) end }) return tostring(t) end,
           coroutine = function() local function f() return coroutine.wrap(f)() end return f() end,
         }
         return function(request)
           local bomb = bombs[request.path:sub(2)]
           if bomb then return bomb() end
           return 'alive'
         end",
    );
    let kirin = serve(
        &site,
        "[lua]\ntime_limit = \"20s\"\nmemory_limit = \"8MB\"\n[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n",
    );
    for bomb in ["rep", "keep", "deep", "gsub", "sort", "text", "coroutine"] {
        assert_eq!(kirin.get(&format!("/{bomb}")).status, 500, "{bomb}");
        assert_eq!(kirin.get("/").text(), "alive", "after {bomb}");
    }
    kirin.wait_for_log("not enough memory");
    kirin.wait_for_log("stack overflow");
}

#[test]
fn values_of_one_request_are_not_visible_to_the_next() {
    let (_site, kirin) = serve_script(
        "return function(request)
           if request.path == '/global' then leaked = request.args.secret return 'set' end
           if request.path == '/string' then string.leaked = request.args.secret return 'set' end
           request.leaked = request.args.secret
           return tostring(leaked) .. tostring(string.leaked) .. tostring(request.leaked)
         end",
    );
    let mut client = kirin.connect();
    assert_eq!(client.get("/?secret=1").text(), "nilnil1");
    assert_eq!(client.get("/global?secret=1").status, 500);
    assert_eq!(client.get("/string?secret=1").status, 500);
    assert_eq!(client.get("/").text(), "nilnilnil");
    kirin.wait_for_log("page.lua:2: assignment to global 'leaked'");
}

#[test]
fn many_concurrent_compare_and_sets_all_succeed() {
    let site = Site::new().with(
        "page.lua",
        handler(
            "while true do
               local value, cas = kirin.store.get('n')
               if kirin.store.cas('n', tonumber(value) + 1, cas) then return 'done' end
             end",
        ),
    );
    let config = CONFIG.replace("threads = 1", "threads = 3");
    let kirin = Kirin::start(
        &site,
        &format!("{config}{PATIENT}[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"),
    );
    memcached(&site).set("n", b"0");
    let address = kirin.address();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                (0..100).for_each(|_| assert_eq!(client.get("/").text(), "done"));
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(memcached(&site).get("n").unwrap(), b"800");
}

#[test]
fn a_changed_script_is_served_and_a_broken_one_is_not() {
    let site = Site::new()
        .with(
            "page.lua",
            "local lib = require 'lib.text' return function() return lib .. ' one' end",
        )
        .with("lib/text.lua", "return 'module'");
    let kirin =
        serve(&site, &format!("{PATIENT}[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"));
    let becomes = |text: &str| wait_for(text, || (kirin.get("/").text() == text).then_some(()));
    becomes("module one");
    std::fs::write(site.path("lib/text.lua"), "return 'changed module'").unwrap();
    becomes("changed module one");
    std::fs::write(site.path("page.lua"), "\n\nreturn function( broken").unwrap();
    wait_for("the log of it", || {
        assert_eq!(kirin.get("/").text(), "changed module one");
        kirin.log().contains("page.lua:3: ").then_some(())
    });
    std::fs::write(site.path("page.lua"), "return function() return 'mended' end").unwrap();
    becomes("mended");
}

#[test]
fn a_script_that_does_not_load_keeps_the_program_from_starting() {
    for (script, told) in
        [("return function(\n\n", "page.lua:3:"), ("return 5", "must return a function")]
    {
        let site = Site::new().with("page.lua", script);
        std::fs::write(
            site.path("kirin.toml"),
            format!("{CONFIG}[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"),
        )
        .unwrap();
        let file = site.path("kirin.toml");
        let mut kirin = Kirin::spawn(&site, &["serve", "--config", file.to_str().unwrap()]);
        assert!(!kirin.wait().success());
        kirin.wait_for_log(told);
    }
}

#[test]
fn script_responses_are_compressed_if_the_route_says_so() {
    let site = Site::new().with("page.lua", handler("return ('hello '):rep(1000)"));
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n\
             [[route]]\npath = \"/coded\"\ncompress = true\ntry = [\"lua:page.lua\"]\n"
        ),
    );
    let mut client = kirin.connect();
    assert_eq!(
        client.request("GET", "/", "Accept-Encoding: gzip\r\n").field("content-encoding"),
        None
    );
    let coded = client.request("GET", "/coded", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.field("content-encoding"), Some("gzip"));
    assert!(coded.body.len() < 1000);
}

#[test]
fn a_log_message_is_one_line() {
    let (_site, kirin) =
        serve_script(&handler("kirin.log.warn('said', 1, 'a\\nb') print('printed') return 'x'"));
    kirin.get("/");
    kirin.wait_for_log("page.lua:2: said 1 a\\nb");
    kirin.wait_for_log("page.lua:2: printed");
}

#[test]
fn a_script_reads_the_visitors_session() {
    let site = Site::new().with(
        "page.lua",
        handler(
            "local s = request.session return s and s.user.name .. (s.gone or '-') or 'nobody'",
        ),
    );
    let config = CONFIG.replace("[store]\n", "[store]\nsession_cookie = \"sid\"\n");
    let kirin = Kirin::start(
        &site,
        &format!("{config}{PATIENT}[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"),
    );
    let id = "0123456789abcdef0123456789abcdef01234567";
    memcached(&site).set(id, br#"{"user":{"name":"ann"}}"#);
    let mut client = kirin.connect();
    assert_eq!(client.request("GET", "/", &format!("Cookie: sid={id}\r\n")).text(), "ann-");
    assert_eq!(client.request("GET", "/", "Cookie: sid=other\r\n").text(), "nobody");
    assert_eq!(client.get("/").text(), "nobody");
}

#[test]
fn directives_in_script_responses_are_carried_out_if_the_route_says_so() {
    let site = Site::new().with(
        "page.lua",
        handler(
            "if request.path == '/waits' then request:body() end
        return '<p><!--#include virtual=\"/part\" --></p>'",
        ),
    );
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}[[route]]\npath = \"/\"\nssi = true\ntry = [\"store\", \"lua:page.lua\"]\n"
        ),
    );
    memcached(&site).set("/part", b"text/html\r\npart");
    let mut client = kirin.connect();
    assert_eq!(client.get("/").text(), "<p>part</p>");
    assert_eq!(client.post("/waits", "text/plain", b"x").text(), "<p>part</p>");
}
