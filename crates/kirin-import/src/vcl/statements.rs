//! Statements of subroutines, as what they add to routes.

use toml::{Table, Value};

use crate::report::Outcome;
use crate::steps::effects::Effect;
use crate::text::{is_settable, without_variables};
use crate::times::time_with_unit;
use crate::vcl::backends::word;
use crate::vcl::tokens::{Kind, Token};

/// What a statement does.
#[derive(Debug)]
pub(crate) enum Action {
    /// It adds something to routes.
    Effects(Vec<Effect>),
    /// It chooses a backend or director, with what its method is called with.
    Backend(String, Option<String>),
    /// It refuses requests with a status.
    Refuse(u16),
    /// It purges: the addresses before it may.
    Purge,
    /// Nothing.
    None,
}

/// Returns what a statement of a subroutine does, and what happened to it.
pub(crate) fn action(subroutine: &str, words: &[Token]) -> (Action, Outcome) {
    let by_itself = |text: &str| (Action::None, Outcome::ByItself(text.to_owned()));
    match (word(words, 0), word(words, 1)) {
        ("return", _) => returned(subroutine, words),
        ("set", "req.backend_hint") => backend(words),
        ("set", name) => match name.split_once(".http.") {
            Some((object, field)) => set_field(subroutine, object, field, words),
            None => set_value(name, words),
        },
        ("unset" | "remove", name) => match name.split_once(".http.") {
            Some((object, field)) => unset(object, field),
            None => left_out(),
        },
        ("hash_data", _) => hash_data(words),
        ("call", _) => left_out(),
        (name, _)
            if name.starts_with("std.collect")
                || name.starts_with("std.log")
                || name.starts_with("std.syslog") =>
        {
            by_itself("the access log has the requests")
        }
        ("ban", _) => by_itself("`kirin purge` removes pages"),
        _ => left_out(),
    }
}

fn left_out() -> (Action, Outcome) {
    let text = "Kirin has no program like VCL: routes, `match` and `cache` (docs/routes.md, \
                docs/cache.md), or a Lua script (docs/lua.md)";
    (Action::None, Outcome::LeftOut(text.to_owned()))
}

fn carried(effect: Effect, text: &str) -> (Action, Outcome) {
    (Action::Effects(vec![effect]), Outcome::Carried(text.to_owned()))
}

/// Reads `return(…)`.
fn returned(subroutine: &str, words: &[Token]) -> (Action, Outcome) {
    let by_itself = |text: &str| (Action::None, Outcome::ByItself(text.to_owned()));
    match (subroutine, word(words, 2)) {
        ("vcl_recv", "pass") => carried(Effect::NoCache, "Without `cache`."),
        ("vcl_recv", "purge") => (
            Action::Purge,
            Outcome::Carried(
                "`purge_from` in `[store]`, and \
            `kirin purge` (docs/purge.md)."
                    .to_owned(),
            ),
        ),
        ("vcl_recv", "pipe") => by_itself("WebSockets and other upgrades pass"),
        (_, "synth") => {
            let status = word(words, 4).parse().unwrap_or(0);
            if status >= 400 {
                let text = "Kirin refuses with 403 or 404.".to_owned();
                return (Action::Refuse(status), Outcome::Carried(text));
            }
            left_out()
        }
        ("vcl_backend_response", "pass") => left_out(),
        ("vcl_backend_response", "retry" | "abandon") => left_out(),
        (_, "restart" | "vcl" | "fail") => left_out(),
        _ => by_itself("it is the usual way of a request"),
    }
}

/// Reads `set req.backend_hint = NAME.backend(…)`.
fn backend(words: &[Token]) -> (Action, Outcome) {
    let name = word(words, 3);
    let (name, argument) = match name.strip_suffix(".backend") {
        Some(name) => (name, Some(word(words, 5).to_owned()).filter(|argument| argument != ")")),
        None => (name, None),
    };
    (Action::Backend(name.to_owned(), argument), Outcome::Carried(String::new()))
}

/// Reads `set req.http.X = …` and those of responses.
fn set_field(subroutine: &str, object: &str, field: &str, words: &[Token]) -> (Action, Outcome) {
    let by_itself = |text: &str| (Action::None, Outcome::ByItself(text.to_owned()));
    let lower = field.to_ascii_lowercase();
    let has = |text: &str| words.iter().any(|token| token.text.contains(text));
    let literal = match words.get(3..) {
        Some([only]) if only.kind == Kind::Text => Some(only.text.as_str()),
        Some([only]) if only.text == "client.ip" => Some("\u{1}"),
        _ => None,
    };
    match (object, lower.as_str()) {
        ("req", "host") => return by_itself("a site has all spellings and ports of its hosts"),
        ("req" | "bereq", "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host") => {
            return by_itself("Kirin writes this field itself");
        }
        ("req", "accept-encoding") => return by_itself("the cache compares codings by itself"),
        ("req", "surrogate-capability") => return by_itself("with `esi = true`"),
        ("req", "cookie") => {
            let text = "Kirin does not change cookies. It shares responses that say `public`; \
                        `cache = { cookies = \"ignore\" }` removes all cookies (docs/cache.md)";
            return (Action::None, Outcome::LeftOut(text.to_owned()));
        }
        ("resp", "x-cache" | "x-cache-hits" | "x-varnish-cache" | "x-served-by") => {
            return by_itself("`Cache-Status` says it (docs/cache.md)");
        }
        ("beresp", "x-url" | "x-host") if has("bereq.") => {
            return by_itself("purges find pages by path");
        }
        _ => {}
    }
    let Some(literal) = literal.filter(|_| is_settable(field)) else { return left_out() };
    let value = without_variables(literal).replace('\u{1}', "{client}");
    let fields = Table::from_iter([(field.to_owned(), Value::from(value))]);
    match object {
        "req" | "bereq" => carried(Effect::RequestHeaders(fields), ""),
        "resp" => carried(Effect::Headers(fields), "On errors, too."),
        "beresp" if lower == "cache-control" => {
            let text = "`Cache-Control` of the server decides: write `cache = { ttl = \"…\" }`";
            (Action::None, Outcome::LeftOut(text.to_owned()))
        }
        "beresp" if subroutine == "vcl_backend_response" => {
            carried(Effect::Headers(fields), "On all responses.")
        }
        _ => left_out(),
    }
}

/// Reads `set beresp.ttl = 1h` and others.
fn set_value(name: &str, words: &[Token]) -> (Action, Outcome) {
    let by_itself = |text: &str| (Action::None, Outcome::ByItself(text.to_owned()));
    let value = word(words, 3);
    let time = (words.len() == 4).then(|| time_with_unit(value)).flatten();
    if let ("beresp.ttl" | "beresp.grace", Some(time)) = (name, time) {
        let (key, text) = match name {
            "beresp.ttl" => ("ttl", "For responses that say nothing themselves."),
            _ => (
                "stale_if_error",
                "While the server fails. `stale-while-revalidate` of the response does the rest.",
            ),
        };
        return carried(Effect::Cache(Table::from_iter([(key.to_owned(), time)])), text);
    }
    match name {
        "beresp.do_esi" if value == "true" => {
            let mut keys = crate::section::Section::default();
            keys.set("esi", true);
            carried(Effect::Keys(keys), "")
        }
        "beresp.do_stream" | "beresp.do_gunzip" | "beresp.keep" | "req.hash_ignore_busy" => {
            by_itself("Kirin does so (docs/cache.md)")
        }
        "beresp.do_gzip" if value == "true" => {
            let text = "write `compress = true`, and read docs/compression.md about BREACH";
            (Action::None, Outcome::LeftOut(text.to_owned()))
        }
        "beresp.uncacheable" => by_itself("what the server forbids is not stored"),
        "req.url" => query(words),
        "bereq.first_byte_timeout" | "bereq.between_bytes_timeout" => {
            let text = "write it into the upstream";
            (Action::None, Outcome::LeftOut(text.to_owned()))
        }
        _ => left_out(),
    }
}

/// Reads what changes the query: arguments that make no difference.
fn query(words: &[Token]) -> (Action, Outcome) {
    let known = ["utm_", "gclid", "fbclid", "cx", "ie", "cof", "siteurl", "mc_cid", "mc_eid"];
    let has = |text: &str| words.iter().any(|token| token.text.contains(text));
    if words.iter().any(|token| token.text == "std.querysort") {
        let text = "the order of arguments counts in Kirin";
        return (Action::None, Outcome::LeftOut(text.to_owned()));
    }
    let found: Vec<Value> = known
        .iter()
        .filter(|name| name.len() > 3 && has(name))
        .map(|name| {
            Value::from(if name.ends_with('_') { format!("{name}*") } else { (*name).to_owned() })
        })
        .collect();
    if found.is_empty() || !words.iter().any(|token| token.text.starts_with("regsub")) {
        return left_out();
    }
    let cache = Table::from_iter([("ignore_query".to_owned(), Value::Array(found))]);
    carried(Effect::Cache(cache), "Look at the list: it has the names that are known here.")
}

fn unset(object: &str, field: &str) -> (Action, Outcome) {
    let by_itself = |text: &str| (Action::None, Outcome::ByItself(text.to_owned()));
    let cache =
        |key: &str, value: Value| Effect::Cache(Table::from_iter([(key.to_owned(), value)]));
    let lower = field.to_ascii_lowercase();
    let fields = Table::from_iter([(field.to_owned(), Value::from(""))]);
    match (object, lower.as_str()) {
        ("req" | "bereq", "cookie") => {
            let text = "GET requests reach the server without cookies, and stored responses lose \
                        their `Set-Cookie`.";
            carried(cache("cookies", "ignore".into()), text)
        }
        ("beresp", "set-cookie") => {
            let text = "GET requests also reach the server without cookies.";
            carried(cache("cookies", "ignore".into()), text)
        }
        ("req", "proxy") => by_itself("servers never get this field"),
        ("req", "accept-encoding") => by_itself("the cache compares codings by itself"),
        ("req" | "bereq", "x-forwarded-for") => by_itself("Kirin writes this field itself"),
        ("req" | "bereq", _) if is_settable(field) => carried(Effect::RequestHeaders(fields), ""),
        ("resp", "via") => {
            let text = "write `via = \"\"` into the upstream";
            (Action::None, Outcome::LeftOut(text.to_owned()))
        }
        ("resp" | "beresp", _) if is_settable(field) => carried(Effect::Headers(fields), ""),
        _ => left_out(),
    }
}

/// Reads `hash_data`: what is in the key beside host and path turns the cache off.
fn hash_data(words: &[Token]) -> (Action, Outcome) {
    let usual = ["req.url", "req.http.host", "server.ip", "req.http.X-Forwarded-Proto"];
    if usual.iter().any(|name| word(words, 2).eq_ignore_ascii_case(name)) {
        return (
            Action::None,
            Outcome::ByItself("the key has host, scheme, path and query".into()),
        );
    }
    let text = "PROTECTION NOT CARRIED OVER: the key of Kirin has no other values than those \
                of `Vary`. There is no cache, until the server sends `Vary`";
    (Action::Effects(vec![Effect::NoCache]), Outcome::LeftOut(text.to_owned()))
}
