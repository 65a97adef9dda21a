//! The instructions of a report: what to do so that a page is in memory.

use std::fmt::Write;

use kirin_advice::report::{Report, ReportEntry, StatedFreshness};
use kirin_advice::verdict::{Cause, KeyPart, NamedGap, PageVerdict};

use super::lines::{ConfigLines, NoLines};
use super::words::{code, visible};

/// The most gaps of a page that are named.
const MAX_GAPS: usize = 6;

pub(super) fn write_cache(
    text: &mut String,
    entry: &ReportEntry,
    lines: Result<ConfigLines, NoLines>,
) {
    *text += match entry.verdict {
        PageVerdict::WithoutCookie { others_differ: true } => {
            "    Visitors with a cookie get pages of their own. They still reach the application.\n"
        }
        PageVerdict::WithoutCookie { others_differ: false } => {
            "    That visitors with a cookie get the same is not proven. They still reach the application.\n"
        }
        _ => {
            "    All visitors then get the page of visitors without a cookie: the application no longer\n    \
             sees their cookies there.\n"
        }
    };
    let ttl = entry.steady.and_then(|steady| steady.ttl_seconds);
    match lines {
        Ok(lines) => {
            if let (StatedFreshness::Validate, Some(ttl)) = (entry.freshness, ttl) {
                let field = match entry.verdict {
                    PageVerdict::Everybody => "s-maxage",
                    _ => "max-age",
                };
                let _ = writeln!(
                    text,
                    "    The application wants it validated each time (`no-cache`). Have it send\n    \
                     `Cache-Control: {field}={ttl}` to visitors without a cookie, and add to kirin.toml:"
                );
            } else {
                let _ = match &lines {
                    ConfigLines::Route(_) => writeln!(text, "    Add to kirin.toml:"),
                    ConfigLines::SiteRoute(site, _) => {
                        writeln!(
                            text,
                            "    Add to kirin.toml, below the `[[site]]` {}:",
                            code(site)
                        )
                    }
                    ConfigLines::Key(_) => {
                        writeln!(
                            text,
                            "    In kirin.toml, change the route {}:",
                            code(&entry.route.path)
                        )
                    }
                };
            }
            for line in lines.text().lines() {
                let _ = writeln!(text, "      {line}");
            }
        }
        Err(reason) => {
            let _ = writeln!(text, "    There are no lines for kirin.toml: {reason}.");
            if let (Some(ttl), NoLines::ManyPages | NoLines::Rewrite | NoLines::Path) =
                (ttl, reason)
            {
                let _ = writeln!(
                    text,
                    "    With `cache = true` in the route {}, the application can say which of its pages\n    \
                     are for all: `Cache-Control: max-age={ttl}` in responses to visitors without a cookie.",
                    code(&entry.route.path)
                );
            }
        }
    }
}

pub(super) fn write_gaps(
    text: &mut String,
    entry: &ReportEntry,
    gaps: &[NamedGap],
    report: &Report,
) {
    for gap in gaps.iter().take(MAX_GAPS) {
        let length = match (gap.shortest, gap.longest) {
            (shortest, longest) if shortest == longest => format!("{longest}"),
            (shortest, longest) => format!("{shortest} to {longest}"),
        };
        let cause = match &gap.cause {
            Cause::Cookie(name) => format!("differs by the cookie {}", code(name)),
            Cause::HasCookie(name) => {
                format!("differs by whether there is the cookie {}", code(name))
            }
            Cause::EachTime => "is new each time, or changes with time".into(),
            Cause::Unknown => "differs; no cookie explains it".into(),
        };
        let _ = writeln!(
            text,
            "    about {length} bytes near byte {}, line {}: {cause}",
            gap.offset, gap.line
        );
    }
    if gaps.len() > MAX_GAPS {
        let _ = writeln!(text, "    and {} more places", gaps.len() - MAX_GAPS);
    }
    *text += "    `cache` would not do: it stores a page with the places of one visitor.\n";
    if !entry.is_html {
        *text += "    Kirin fills in such places in `text/html` only.\n";
        return;
    }
    let key = visible(&entry.target);
    let _ = writeln!(
        text,
        "    Have the application store the page as a visitor without a cookie gets it, with a directive\n    \
         in each place (docs/pages.md, docs/sessions.md):"
    );
    let is_session = |cause: &Cause| match cause {
        Cause::Cookie(name) | Cause::HasCookie(name) => report.sessions.contains(name),
        Cause::EachTime | Cause::Unknown => false,
    };
    let mut directives = Vec::new();
    for gap in gaps {
        let directive = match &gap.cause {
            cause if is_session(cause) => {
                "<!--# if expr=\"$session.name\" --> … <!--# else --> … <!--# endif -->".to_owned()
            }
            Cause::Cookie(name) | Cause::HasCookie(name) => {
                format!("<!--# if expr=\"$cookie_{}\" --> … <!--# endif -->", visible(name))
            }
            Cause::EachTime | Cause::Unknown => "<!--# include virtual=\"/a-part\" -->".to_owned(),
        };
        if !directives.contains(&directive) {
            directives.push(directive);
        }
    }
    for directive in directives {
        let _ = writeln!(text, "      {directive}");
    }
    let _ = writeln!(
        text,
        "      memcached: set {key} \"text/html; charset=UTF-8\\r\\n<!DOCTYPE html>…\""
    );
    if entry.route.place.starts_with("app:") {
        let ttl = entry.steady.and_then(|steady| steady.ttl_seconds);
        let ttl = ttl.map_or("…".to_owned(), |ttl| ttl.to_string());
        let _ = writeln!(
            text,
            "      or the field `Kirin-Store: ttl={ttl}` in a response that has the directives, and `ssi = true`"
        );
    }
    if entry.steady.is_none_or(|steady| steady.changes > 0) {
        *text += "    It changes with time: store it again, or purge it, at each change (docs/purge.md).\n";
    }
    if !entry.route.has_store {
        let _ =
            writeln!(text, "    The route {} needs `store` in its `try`.", code(&entry.route.path));
    }
}

pub(super) fn write_key(text: &mut String, key: &KeyPart, values: usize) {
    let _ = match key {
        KeyPart::Field(name) => writeln!(
            text,
            "    It differs by `{name}` ({values} values seen). Have the application send `Vary: {name}`\n    \
             and `Cache-Control: max-age=…` to visitors without a cookie, and give the route `cache = true`."
        ),
        KeyPart::Cookie(name) => writeln!(
            text,
            "    It differs by the cookie {} ({values} values seen). No key of the cache has one cookie.\n    \
             Store one page for each value, and choose by `$cookie_{}` in a directive, or move\n    \
             the value into the path.",
            code(name),
            visible(name)
        ),
    };
}
