//! The facts that a run keeps about the head of a response.

use std::time::{SystemTime, UNIX_EPOCH};

use kirin_advice::observation::{Freshness, Statement};
use kirin_cache::cache_control::DirectiveScope;
use kirin_cache::surrogate::targeted_directives;
use kirin_cache::{ResponseDirectives, Vary};
use kirin_http::FieldLines;
use kirin_http::date::parse_date;
use kirin_http::field_list::members;
use kirin_http::media_type::is_html;

use crate::filters::push::store_field::STORE;

/// The most names in `Vary` that are kept.
const MAX_VARY: usize = 16;

/// Returns what a response says in its head.
pub fn statement(fields: &FieldLines) -> Statement {
    let targeted = targeted_directives(fields);
    let is_targeted = targeted.is_some();
    let directives =
        targeted.unwrap_or_else(|| ResponseDirectives::from_fields(fields, "cache-control"));
    let vary = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"vary"));
    let mut vary: Vec<String> = vary
        .flat_map(|(_, value)| members(value))
        .take(MAX_VARY)
        .map(|name| String::from_utf8_lossy(name).to_ascii_lowercase())
        .collect();
    if Vary::from_fields(fields) == Vary::Any {
        vary = vec!["*".into()];
    }
    let is_coded = fields
        .get("content-encoding")
        .is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity"));
    Statement {
        sets_cookie: fields.get("set-cookie").is_some(),
        is_private: directives.no_store || directives.private != DirectiveScope::Nothing,
        is_public: directives.public || directives.s_maxage.is_some() || is_targeted,
        freshness: freshness(&directives, fields, is_targeted),
        vary,
        is_html: fields.get("content-type").is_some_and(is_html),
        is_coded,
        is_stored: fields.get(STORE).is_some(),
    }
}

fn freshness(directives: &ResponseDirectives, fields: &FieldLines, is_targeted: bool) -> Freshness {
    if directives.no_cache == DirectiveScope::Response {
        return Freshness::Validate;
    }
    if let Some(seconds) = directives.s_maxage.or(directives.max_age) {
        return Freshness::Seconds(seconds);
    }
    match fields.get("expires") {
        Some(expires) if !is_targeted => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
            Freshness::Seconds(parse_date(expires).unwrap_or(0).saturating_sub(now))
        }
        _ => Freshness::Unstated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&'static str, &str)]) -> Statement {
        let mut fields = FieldLines::new();
        lines.iter().for_each(|(name, value)| fields.push(name, value));
        statement(&fields)
    }

    #[test]
    fn what_a_head_says_about_sharing() {
        let nothing = Statement::default();
        for (lines, expected) in [
            (&[][..], nothing.clone()),
            (&[("Cache-Control", "private")], Statement { is_private: true, ..nothing.clone() }),
            (
                &[("Cache-Control", "private=\"set-cookie\"")],
                Statement { is_private: true, ..nothing.clone() },
            ),
            (&[("Cache-Control", "no-store")], Statement { is_private: true, ..nothing.clone() }),
            (
                &[("Cache-Control", "no-cache")],
                Statement { freshness: Freshness::Validate, ..nothing.clone() },
            ),
            (
                &[("Cache-Control", "public, max-age=5")],
                Statement { is_public: true, freshness: Freshness::Seconds(5), ..nothing.clone() },
            ),
            (
                &[("Cache-Control", "private"), ("CDN-Cache-Control", "max-age=5")],
                Statement { is_public: true, freshness: Freshness::Seconds(5), ..nothing.clone() },
            ),
            (
                &[("Expires", "0")],
                Statement { freshness: Freshness::Seconds(0), ..nothing.clone() },
            ),
            (&[("Set-Cookie", "a=b")], Statement { sets_cookie: true, ..nothing.clone() }),
            (
                &[("Vary", "Accept-Language, Cookie")],
                Statement {
                    vary: vec!["accept-language".into(), "cookie".into()],
                    ..nothing.clone()
                },
            ),
            (&[("Vary", "Accept, *")], Statement { vary: vec!["*".into()], ..nothing.clone() }),
            (
                &[("Content-Type", "text/html; charset=utf-8"), ("Content-Encoding", "gzip")],
                Statement { is_html: true, is_coded: true, ..nothing.clone() },
            ),
            (&[("Kirin-Store", "ttl=5")], Statement { is_stored: true, ..nothing }),
        ] {
            assert_eq!(read(lines), expected, "{lines:?}");
        }
    }
}
