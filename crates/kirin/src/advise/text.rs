//! The report as text for people.

use std::fmt::Write;

use crate::lines::{Lines, NoLines};
use crate::report::{Entry, Report, StatedFreshness, Steady};
use crate::verdict::{Cause, KeyPart, Missing, NamedGap, Reason, Verdict};

/// The most entries of a section.
const MAX_SHOWN: usize = 20;

/// The most gaps of a page that are named.
const MAX_GAPS: usize = 6;

/// A section: its title, and which verdicts are in it.
type Section = (&'static str, fn(&Verdict) -> bool);

const SECTIONS: [Section; 7] = [
    ("The same for everybody", |verdict| matches!(verdict, Verdict::Everybody)),
    ("The same but for some places", |verdict| matches!(verdict, Verdict::SameBut { .. })),
    ("The same for visitors without a cookie", |verdict| {
        matches!(verdict, Verdict::WithoutCookie { .. })
    }),
    ("The same with a part of the request in the key", |verdict| {
        matches!(verdict, Verdict::NeedsKey { .. })
    }),
    ("In memory already, or changing too often", |verdict| {
        matches!(verdict, Verdict::Stored | Verdict::Changing)
    }),
    ("Too little evidence", |verdict| matches!(verdict, Verdict::Unproven { .. })),
    ("Not safe to share", |verdict| matches!(verdict, Verdict::Unsafe { .. })),
];

/// Writes the report. `lines` gives the lines of the configuration for an entry.
pub fn text(report: &Report, lines: impl Fn(&Entry) -> Result<Lines, NoLines>) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:.0} s, {} to applications and upstreams, {:.2} s of their time",
        report.seconds,
        counted(report.requests, "request"),
        report.place_seconds
    );
    if report.requests == 0 {
        text += "No request reached an application or an upstream.\n";
        return text;
    }
    let _ = match report.sessions.as_slice() {
        [] => writeln!(text, "no cookie names sessions: too few visitors had one"),
        names => writeln!(
            text,
            "sessions: {}",
            names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
        ),
    };
    for (title, is_in) in SECTIONS {
        let entries: Vec<&Entry> =
            report.entries.iter().filter(|entry| is_in(&entry.verdict)).collect();
        if entries.is_empty() {
            continue;
        }
        let requests: u64 = entries.iter().map(|entry| entry.saved_requests).sum();
        let seconds: f64 = entries.iter().map(|entry| entry.saved_seconds).sum();
        let _ = write!(text, "\n{title}");
        if requests > 0 {
            let _ = write!(
                text,
                ": memory would save {} of the requests, {} of the time",
                percent(requests as f64, report.requests as f64),
                percent(seconds, report.place_seconds)
            );
        }
        text.push('\n');
        for entry in entries.iter().take(MAX_SHOWN) {
            write_entry(&mut text, entry, report, &lines);
        }
        if entries.len() > MAX_SHOWN {
            let _ = writeln!(text, "\n  and {} more (--json has them)", entries.len() - MAX_SHOWN);
        }
    }
    if report.left_out > 0 {
        let _ = writeln!(
            text,
            "\n{} only counted: for paths that do not exist (4xx), or for more targets than there is room for",
            counted(report.left_out, "request")
        );
    }
    if report.without_pieces > 0 {
        let _ = writeln!(
            text,
            "\n{} only compared as a whole: there was no room for more pieces of bodies",
            counted(report.without_pieces, "response")
        );
    }
    text
}

fn write_entry(
    text: &mut String,
    entry: &Entry,
    report: &Report,
    lines: &impl Fn(&Entry) -> Result<Lines, NoLines>,
) {
    let _ = write!(text, "\n  {}", visible(&entry.target));
    if entry.pages > 1 {
        let _ = write!(text, " ({} pages)", entry.pages);
    }
    let _ = writeln!(text, "  {} {}", entry.route.place, visible(&entry.host));
    let _ = write!(
        text,
        "    {}, {:.3} s ({} of the time)",
        counted(entry.requests, "request"),
        entry.place_seconds,
        percent(entry.place_seconds, report.place_seconds)
    );
    if entry.saved_requests > 0 {
        let _ = write!(
            text,
            "; memory would save {}, {:.3} s",
            entry.saved_requests, entry.saved_seconds
        );
    }
    text.push('\n');
    if let Some(steady) = &entry.steady {
        let _ = writeln!(
            text,
            "    {}; seen by {}",
            steadiness(steady),
            counted(entry.visitors as u64, "visitor")
        );
    }
    match &entry.verdict {
        Verdict::Everybody | Verdict::WithoutCookie { .. } => {
            write_cache(text, entry, lines(entry))
        }
        Verdict::SameBut { gaps } => write_gaps(text, entry, gaps, report),
        Verdict::NeedsKey { key, values } => write_key(text, key, *values),
        Verdict::Changing => *text += "    It changes too often for a `ttl`.\n",
        Verdict::Stored => *text += "    The application stores it (`Kirin-Store`).\n",
        Verdict::Unsafe { reasons } => {
            for reason in reasons {
                let _ = writeln!(text, "    {}", reason_text(reason));
            }
        }
        Verdict::Unproven { missing } => {
            for missing in missing {
                let _ = writeln!(text, "    {}", missing_text(missing));
            }
        }
    }
}

fn write_cache(text: &mut String, entry: &Entry, lines: Result<Lines, NoLines>) {
    *text += match entry.verdict {
        Verdict::WithoutCookie { others_differ: true } => {
            "    Visitors with a cookie get pages of their own. They still reach the application.\n"
        }
        Verdict::WithoutCookie { others_differ: false } => {
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
                    Verdict::Everybody => "s-maxage",
                    _ => "max-age",
                };
                let _ = writeln!(
                    text,
                    "    The application wants it validated each time (`no-cache`). Have it send\n    \
                     `Cache-Control: {field}={ttl}` to visitors without a cookie, and add to kirin.toml:"
                );
            } else {
                let _ = match &lines {
                    Lines::Route(_) => writeln!(text, "    Add to kirin.toml:"),
                    Lines::SiteRoute(site, _) => {
                        writeln!(
                            text,
                            "    Add to kirin.toml, below the `[[site]]` {}:",
                            code(site)
                        )
                    }
                    Lines::Key(_) => {
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

fn write_gaps(text: &mut String, entry: &Entry, gaps: &[NamedGap], report: &Report) {
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

fn write_key(text: &mut String, key: &KeyPart, values: usize) {
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

fn reason_text(reason: &Reason) -> String {
    let statuses = |statuses: &[u16]| match statuses {
        [] => "were not seen".to_owned(),
        _ => {
            let list: Vec<String> = statuses.iter().map(u16::to_string).collect();
            format!("get {}", list.join(", "))
        }
    };
    match reason {
        Reason::Method => "The method is not GET or HEAD.".into(),
        Reason::RequestBody => "Requests have a body.".into(),
        Reason::Protected => "The route asks for a password, an address or a certificate.".into(),
        Reason::SetsCookie => "Responses set a cookie.".into(),
        Reason::Private => "The application says `private` or `no-store`.".into(),
        Reason::VariesByAll => "The application says `Vary: *`.".into(),
        Reason::Statuses { anonymous, known } => format!(
            "Visitors get different statuses: those without a cookie {}, others {}.",
            statuses(anonymous),
            statuses(known)
        ),
        Reason::Status(status) => format!("The status is {status}."),
        Reason::OwnValue => "The page has a value of the visitor's own cookies.".into(),
        Reason::CredentialsOnly => "It is only requested with credentials.".into(),
        Reason::OtherFields(names) => format!(
            "It differs with fields that may name the visitor, and that no cache key has: {}.",
            names.iter().map(|name| code(name)).collect::<Vec<_>>().join(", ")
        ),
        Reason::PublicButDiffers => {
            "It says `public`, but visitors with a cookie get other pages. Kirin would share them."
                .into()
        }
        Reason::Address => "It depends on the address of the client.".into(),
        Reason::Agent => "It depends on the browser (`User-Agent`).".into(),
        Reason::Differs => {
            "It differs between visitors without a cookie, and nothing explains it.".into()
        }
        Reason::File => "It is a file, which Kirin sends from the disk.".into(),
        Reason::TooLong => "It is too long to be compared.".into(),
    }
}

fn missing_text(missing: &Missing) -> String {
    match missing {
        Missing::Body => "No complete response was seen.".into(),
        Missing::Visitors { seen: 0, needed } => {
            format!("No visitor with a session was seen; {needed} are needed.")
        }
        Missing::Visitors { seen, needed } => {
            format!("Seen {} only; {needed} are needed.", counted(*seen as u64, "visitor"))
        }
        Missing::Addresses { seen, needed } => {
            let addresses = if *seen == 1 { "address" } else { "addresses" };
            format!(
                "Seen by visitors without a cookie from {seen} {addresses} only; {needed} are needed (--addresses)."
            )
        }
        Missing::Anonymous => "No visitor without a cookie was seen.".into(),
        Missing::Versions => {
            "Each visitor without a cookie got another page, and few were seen.".into()
        }
        Missing::Fields { names, seen, needed } => {
            let names: Vec<_> = names.iter().map(|name| code(name)).collect();
            let values = counted(*seen as u64, "value");
            format!(
                "Seen with {values} of {} only, which may name the visitor; {needed} are needed.",
                names.join(", ")
            )
        }
    }
}

fn steadiness(steady: &Steady) -> String {
    let observed = steady.observed_seconds;
    match (steady.changes, steady.shortest_seconds) {
        (0, _) => format!("stayed the same for {observed:.0} s"),
        (changes @ 2.., Some(shortest)) => {
            format!("changed {} in {observed:.0} s, at least {shortest:.1} s apart", times(changes))
        }
        (changes, _) => format!("changed {} in {observed:.0} s", times(changes)),
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn percent(part: f64, all: f64) -> String {
    if all > 0.0 { format!("{:.0} %", part / all * 100.0) } else { "0 %".into() }
}

/// Returns text that strangers have chosen, for a terminal: other bytes than visible ASCII are
/// escaped.
fn visible(text: &str) -> String {
    let escaped = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => c.escape_unicode().to_string(),
    };
    text.chars().map(escaped).collect()
}

fn code(text: &str) -> String {
    format!("`{}`", visible(text))
}
