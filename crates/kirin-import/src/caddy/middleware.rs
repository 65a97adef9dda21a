//! Directives that add something to the routes of their requests.

use toml::{Table, Value};

use crate::caddy::fields::field;
use crate::caddy::placeholders::{has_placeholder, template};
use crate::caddy::proxy::forward_auth;
use crate::caddy::tree::Directive;
use crate::draft::Draft;
use crate::report::Outcome;
use crate::section::Section;
use crate::steps::effects::Effect;
use crate::text::size;

/// Reads a directive that adds something. `taken` is the number of arguments of its matcher.
/// `None`: it is not such a directive.
pub(crate) fn middleware(
    directive: &Directive,
    taken: usize,
    draft: &mut Draft,
) -> Option<(Vec<Effect>, Outcome)> {
    let arguments = directive.arguments().get(taken..).unwrap_or_default();
    let first = arguments.first().map_or("", String::as_str);
    let done = |effect: Effect, text: &str| (vec![effect], Outcome::Carried(text.to_owned()));
    let found = match directive.name() {
        "root" => done(Effect::Root(first.trim_end_matches('/').to_owned()), ""),
        "header" => headers(directive, arguments, true),
        "request_header" => headers(directive, arguments, false),
        "basic_auth" | "basicauth" => basic_auth(directive, arguments),
        "forward_auth" => forward_auth(directive, arguments, draft),
        "encode" => encode(directive, arguments),
        "request_body" => request_body(directive),
        "rewrite" => rewrite(first),
        "uri" => uri(arguments),
        "try_files" => try_files(arguments),
        "log_skip" | "skip_log" => {
            let mut keys = Section::default();
            keys.set("access_log", false);
            done(Effect::Keys(keys), "")
        }
        _ => return None,
    };
    Some(found)
}

fn left_out(text: &str) -> (Vec<Effect>, Outcome) {
    (Vec::new(), Outcome::LeftOut(text.to_owned()))
}

/// Reads `header` and `request_header`: a field in the line, or fields in the block.
fn headers(directive: &Directive, arguments: &[String], response: bool) -> (Vec<Effect>, Outcome) {
    let mut fields = Table::new();
    let mut lacking = Vec::new();
    if !arguments.is_empty() {
        field(arguments, &mut fields, &mut lacking);
    }
    for inner in directive.inner().iter().filter(|inner| inner.name() != "defer") {
        field(&inner.words, &mut fields, &mut lacking);
    }
    let effect = if response { Effect::Headers(fields) } else { Effect::RequestHeaders(fields) };
    let outcome = if !lacking.is_empty() {
        Outcome::LeftOut(format!("Kirin cannot set {} so", lacking.join(", ")))
    } else if response {
        Outcome::Carried("On errors, too.".to_owned())
    } else {
        Outcome::Carried(String::new())
    };
    (vec![effect], outcome)
}

/// Reads `basic_auth`. The accounts become a file, which the user must write.
fn basic_auth(directive: &Directive, arguments: &[String]) -> (Vec<Effect>, Outcome) {
    let hash = arguments.first().map_or("bcrypt", String::as_str);
    let accounts: Vec<_> = directive.inner().iter().collect();
    if !matches!(hash, "bcrypt" | "argon2id") || accounts.is_empty() {
        let text = "PROTECTION NOT CARRIED OVER: Kirin has bcrypt, SHA-crypt and Argon2. The \
                    route is closed";
        return (
            vec![Effect::Closed("the accounts are not known".into())],
            Outcome::LeftOut(text.into()),
        );
    }
    let line = directive.place.line;
    let file = directive.place.file.rsplit('/').next().unwrap_or_default();
    let file = format!("{}-{line}.htpasswd", crate::draft::name_of(file));
    let mut keys = Section::default();
    keys.comment(format!("Write `{file}` with a line `NAME:HASH` for each user:"));
    for account in accounts {
        keys.comment(format!("{}:{}", account.name(), account.argument(0).unwrap_or_default()));
    }
    keys.set("basic_auth", file.as_str());
    if let Some(realm) = arguments.get(1) {
        keys.set("basic_auth_realm", realm.as_str());
    }
    let text = format!(
        "The accounts belong into the file `{file}`, as the comment says. Without it Kirin does \
         not start. A hash without `$` is base64 of one (`base64 -d`). Paths differ in upper and \
         lower case."
    );
    (vec![Effect::Login(keys)], Outcome::Carried(text))
}

fn encode(directive: &Directive, arguments: &[String]) -> (Vec<Effect>, Outcome) {
    let inner = directive.inner().iter().map(|inner| inner.name().to_owned());
    let names: Vec<_> = arguments.iter().cloned().chain(inner).collect();
    let known = |name: &&String| matches!(name.as_str(), "gzip" | "zstd" | "br");
    let mut codings: Vec<Value> = Vec::new();
    for name in names.iter().filter(known) {
        let value = Value::from(name.as_str());
        if !codings.contains(&value) {
            codings.push(value);
        }
    }
    if codings.is_empty() {
        codings = vec![Value::from("zstd"), Value::from("gzip")];
    }
    let text = "Read compression.md about BREACH. Levels, types and sizes cannot be set.";
    (vec![Effect::Compress(codings)], Outcome::Carried(text.to_owned()))
}

fn request_body(directive: &Directive) -> (Vec<Effect>, Outcome) {
    let largest = directive.inner().iter().find(|inner| inner.name() == "max_size");
    match largest.and_then(|inner| bytes(inner.argument(0)?)) {
        Some(bytes) => {
            let text = if directive.inner().len() > 1 { "`max_size` only." } else { "" };
            (vec![Effect::BodyLimit(size(bytes))], Outcome::Carried(text.to_owned()))
        }
        None => left_out("write `body_limit` of a route"),
    }
}

/// Reads a size such as `10MB` (of 1,000,000 bytes) or `10MiB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" | "k" => 1000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Reads `rewrite`: `/prefix{uri}`, or a path.
fn rewrite(to: &str) -> (Vec<Effect>, Outcome) {
    let (path, query) = to.split_once('?').unwrap_or((to, ""));
    let kept = query.is_empty() || matches!(query, "{query}" | "{http.request.uri.query}");
    let ends = ["{uri}", "{path}", "{http.request.uri}", "{http.request.uri.path}"];
    let prefix = ends.iter().find_map(|end| path.strip_suffix(end));
    match prefix.or(Some(path)).map(template) {
        Some(Ok(to_path)) if kept && to_path.starts_with('/') | to_path.is_empty() => {
            let effect = Effect::Rewrite(to_path, prefix.is_none());
            let text = if prefix.is_none() { "With the rest of the path behind it." } else { "" };
            (vec![effect], Outcome::Carried(text.to_owned()))
        }
        _ => left_out("`rewrite` of Kirin replaces the path of its route (docs/routes.md)"),
    }
}

fn uri(arguments: &[String]) -> (Vec<Effect>, Outcome) {
    match arguments {
        [action, prefix] if action == "strip_prefix" && !has_placeholder(prefix) => {
            let prefix = format!("/{}", prefix.trim_matches('/'));
            (vec![Effect::StripPrefix(prefix)], Outcome::Carried(String::new()))
        }
        _ => left_out("`rewrite` of Kirin replaces the path of its route (docs/routes.md)"),
    }
}

/// Reads `try_files`. What places do by themselves needs nothing.
fn try_files(arguments: &[String]) -> (Vec<Effect>, Outcome) {
    let mut effects = Vec::new();
    let mut lacking = Vec::new();
    for file in arguments {
        match file.as_str() {
            "{path}" | "{path}/" | "{http.request.uri.path}" | "=404" => {}
            file if file.starts_with("/index.php") || file.starts_with("index.php") => {}
            "{path}/index.php" | "{path}/index.html" => {}
            page if page.starts_with('/') && !page.contains(['{', '?']) => {
                effects.push(Effect::Fallback(page.to_owned()));
            }
            other => lacking.push(other.to_owned()),
        }
    }
    if lacking.is_empty() {
        let text = "Files come first. A page of its end is for navigations only (docs/spa.md).";
        return (effects, Outcome::Carried(text.to_owned()));
    }
    let text = format!("Kirin does not look for {} (docs/files.md)", lacking.join(", "));
    (effects, Outcome::LeftOut(text))
}
