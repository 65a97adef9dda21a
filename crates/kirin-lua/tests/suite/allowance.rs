//! No library function runs longer than its call may.
//!
//! The tests prepare large values while the script loads. A call then begins with its time used up,
//! and consists of one function: it fails only if the function itself looks at the clock. No test
//! measures time.

use std::time::Duration;

use kirin_http::Method;
use kirin_http::request::BodyLength;
use kirin_lua::{CallOutcome, Fault, Supply};
use proptest::prelude::*;

use crate::support::{NOW, Site, called, fault};

/// Large values. Each takes a function in the table below much longer than a look at the clock.
const VALUES: &str = "
local text = ('abcdefgh'):rep(64 * 1024)
local other = ('abcdefgh'):rep(64 * 1024 - 1) .. 'abcdefgX'
local markup = ('<&>'):rep(128 * 1024)
local escaped = ('%41+'):rep(128 * 1024)
local set = '[' .. ('bcde'):rep(16 * 1024) .. ']'
local base64 = kirin.base64(text)
local json = '[' .. ('{\"a\":[1]},'):rep(16 * 1024) .. '0]'
local json_text = '\"' .. text .. text .. text .. '\"'
local numbers, words, holes = {}, {}, {}
for i = 1, 70000 do numbers[i] = i + 0.5 words[i] = 'w' .. i % 7 end
local lines = {}
for i = 1, 3000 do lines['X-' .. i] = 'v' end
";

/// Returns what a call with this body does that has no time. It waits before, because a script with
/// such values looks at the clock at almost every function that it enters.
fn without_time(site: &Site, body: &str) -> CallOutcome {
    let source = format!("{VALUES}\nreturn function(request) request:body() {body} end");
    let script = site.open(&source).unwrap();
    let request = called(Method::POST, "/", &[], BodyLength::Exact(1));
    let CallOutcome::Waiting(mut waiting) = script.call(request, NOW) else {
        panic!("no wait for the body")
    };
    assert!(waiting.wanted().is_some());
    waiting.spend_all();
    waiting.resume(Supply::Body("x".into()), NOW)
}

#[test]
fn every_function_looks_at_the_clock() {
    let mut site = Site::new();
    site.limits.time = Duration::from_secs(3600);
    site.limits.memory_bytes = 128 << 20;
    let functions = [
        "return kirin.json.decode(json)",
        "return kirin.json.decode(json_text)",
        "return kirin.json.encode(numbers)",
        "return kirin.json.encode(text)",
        "return kirin.escape(markup)",
        "return kirin.escape_url(markup)",
        "return kirin.unescape_url(escaped)",
        "return kirin.sha256(text)",
        "return kirin.hmac_sha256('key', text)",
        "return kirin.hmac_sha256(text, 'text')",
        "return kirin.hex(text)",
        "return kirin.base64(text)",
        "return kirin.base64url(text)",
        "return kirin.unbase64(base64)",
        "return kirin.equals(text, other)",
        "return ('aaaa'):find(set .. set .. '?b')",
        "return ('a'):rep(9):find(set)",
        "return text:find(set)",
        "return text:find('X', 1, true)",
        "return text:find(other)",
        "return text:match('(((((((((((((((.*)))))))))))))))')",
        "return text:match('^(.*)%1$')",
        "return text:gsub('.*', '%0%0%0%0')",
        "return ('a'):gsub('a', other)",
        "return ('a'):gsub('a', other:gsub('.', '%%%%'))",
        "return text:gmatch('x')()",
        "return text:rep(2)",
        "return text:upper()",
        "return text:lower()",
        "return text:reverse()",
        "return ('%s%s'):format(text, other)",
        "return table.concat(numbers)",
        "return table.concat(words, ', ')",
        "return table.insert(words, 1, 'x')",
        "return table.maxn(words)",
        "table.sort(words)",
        "table.sort(words, rawequal)",
        "return tonumber(('1'):rep(100000))",
        "return tonumber(text)",
        "return { body = words }",
        "return { headers = lines }",
        "kirin.fetch('/', { body = text })",
    ];
    let looks = |body: &&str| matches!(without_time(&site, body), CallOutcome::Failed(Fault::Time));
    let without: Vec<_> = functions.iter().filter(|body| !looks(body)).collect();
    assert!(without.is_empty(), "no look at the clock: {without:#?}");
    // It is not the script itself that looks.
    for body in ["return text", "return #(text .. other)", "return kirin.escape('<')"] {
        assert!(!looks(&body), "{body}");
    }
}

#[test]
fn a_request_body_is_parsed_within_the_time() {
    let mut site = Site::new();
    site.limits.time = Duration::from_secs(3600);
    for (method, body) in [
        ("form", "a=1&".repeat(200_000)),
        ("form", "%41".repeat(300_000)),
        ("json", format!("[{}0]", "[[]],".repeat(150_000))),
        ("json", format!("{{{}\"z\":0}}", "\"a\":{},".repeat(100_000))),
    ] {
        let script = site.handler(&format!("return tostring(request:{method}())"));
        let request = called(Method::POST, "/", &[], BodyLength::Exact(body.len() as u64));
        let CallOutcome::Waiting(mut waiting) = script.call(request, NOW) else {
            panic!("no wait for the body")
        };
        assert!(waiting.wanted().is_some());
        waiting.spend_all();
        assert_eq!(fault(waiting.resume(Supply::Body(body.into()), NOW)), Fault::Time, "{method}");
    }
}

/// Returns the time that this thread has spent on a processor.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Generates texts that make functions do much work.
fn text() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "a=1&",
        "%41",
        "[],",
        "{\"a\":{}},",
        "\"\\u00e9",
        "1.5e3,",
        "(.*)",
        "[a-z]",
        "a-",
        "%b()",
        "%f[%w]",
        ".-x",
        "aaaa",
        "x",
        "",
        "</",
        "<&>",
        "%1",
        "%s",
        "%d",
        "(",
        ")",
        "[^",
        "%%",
        "1",
        "e",
        "=",
        "AA==",
        "\u{e9}",
        "%c",
    ];
    proptest::collection::vec(proptest::sample::select(PARTS), 0..12)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Measures processor time, so that other processes on the machine do not count. The bound
    /// leaves room for what one instruction takes.
    #[test]
    fn no_function_runs_longer_than_ten_times_the_limit(
        which: u8, times in 0u8..20, a in text(), b in text(),
    ) {
        const LIMIT: Duration = Duration::from_millis(50);
        let mut site = Site::new();
        site.limits.time = LIMIT;
        let script = site.open(include_str!("support/functions.lua")).unwrap();
        let body = [&[which, times][..], a.as_bytes(), b"\0", b.as_bytes()].concat();
        let request = called(Method::POST, "/?a=b", &[("a", "b")], BodyLength::Exact(body.len() as u64));
        let before = processor_time();
        // If other processes have the processor for too long, the call ends before it waits.
        match script.call(request, NOW) {
            CallOutcome::Waiting(mut waiting) => {
                prop_assert!(waiting.wanted().is_some());
                let _ = waiting.resume(Supply::Body(body.into()), NOW);
            }
            ended => prop_assert_eq!(fault(ended), Fault::Time),
        }
        let took = processor_time() - before;
        prop_assert!(took < 10 * LIMIT, "{took:?}");
    }
}
