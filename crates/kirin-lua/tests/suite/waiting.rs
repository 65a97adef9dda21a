//! Scripts that wait: for a body, for answers to subrequests.

use bytes::Bytes;
use kirin_http::request::BodyLength;
use kirin_http::{FieldLines, Method, StatusCode};
use kirin_lua::{AwaitedInput, CallOutcome, Fault, Fetched, Supply};

use crate::support::{NOW, Site, answered, called, fault, get, text};

#[test]
fn a_body_is_waited_for_once() {
    let site = Site::new();
    let script =
        site.handler("local a = request:form() return a.x .. #request:body() .. request:json_or()");
    drop(script);
    let script = site
        .handler("local form = request:form() return form.x .. #request:body() .. request:body()");
    let called = called(Method::POST, "/", &[], BodyLength::Exact(5));
    let CallOutcome::Waiting(mut suspended) = script.call(called, NOW) else {
        panic!("does not wait")
    };
    assert!(matches!(suspended.wanted(), Some(AwaitedInput::Body)));
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
        let CallOutcome::Waiting(mut suspended) = script.call(get("/"), NOW) else { panic!("does not wait: {body}") };
        let Some(AwaitedInput::Fetches(fetches)) = suspended.wanted() else { panic!("waits for something else") };
        let [fetch] = &fetches[..] else { panic!("{fetches:?}") };
        assert_eq!((fetch.method.as_str(), fetch.target.as_str(), &fetch.body[..]), ("PUT", "/a?b", &b"sent"[..]));
        assert_eq!(fetch.fields, [("x-a".to_owned(), b"1".to_vec())]);
        let response = answered(suspended.resume(Supply::Fetched(vec![fetched("body")]), NOW));
        assert_eq!(text(&response), "202text/plainb=2body", "{body}");
    }
}

#[test]
fn several_subrequests_run_at_once_and_are_answered_in_order() {
    let site = Site::new();
    let script = site.handler(
        "local all = kirin.fetch_all { '/1', { '/2', method = 'HEAD' }, '/3' }
         return all[1].body .. all[2].body .. all[3].body .. #kirin.fetch_all {}",
    );
    let CallOutcome::Waiting(mut suspended) = script.call(get("/"), NOW) else {
        panic!("does not wait")
    };
    let Some(AwaitedInput::Fetches(fetches)) = suspended.wanted() else {
        panic!("waits for something else")
    };
    let targets: Vec<_> =
        fetches.iter().map(|fetch| format!("{} {}", fetch.method, fetch.target)).collect();
    assert_eq!(targets, ["GET /1", "HEAD /2", "GET /3"]);
    let supply = Supply::Fetched(["a", "b", "c"].map(fetched).to_vec());
    assert_eq!(text(&answered(suspended.resume(supply, NOW))), "abc0");
}

#[test]
fn a_refused_subrequest_is_an_error_with_its_place() {
    let site = Site::new();
    let script = site.handler("local ok, problem = pcall(kirin.fetch, '/x') return problem");
    let CallOutcome::Waiting(suspended) = script.call(get("/"), NOW) else {
        panic!("does not wait")
    };
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
            CallOutcome::Waiting(suspended) => (n, suspended),
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
fn an_abandoned_waiting_call_leaves_nothing_behind() {
    let site = Site::new();
    let script = site.handler("kirin.fetch('/') return 'x'");
    for _ in 0..10_000 {
        assert!(matches!(script.call(get("/"), NOW), CallOutcome::Waiting(_)));
    }
}

#[test]
fn a_waiting_call_continues_in_its_version_when_the_script_changes() {
    let site = Site::new();
    let script = site.handler("return kirin.fetch('/').body .. 'old'");
    let CallOutcome::Waiting(suspended) = script.call(get("/"), NOW) else {
        panic!("does not wait")
    };
    site.write("page.lua", "return function() return 'the new version' end");
    assert_eq!(text(&answered(script.call(get("/"), NOW.plus_seconds(1)))), "the new version");
    assert_eq!(text(&answered(suspended.resume(Supply::Fetched(vec![fetched("x")]), NOW))), "xold");
}
