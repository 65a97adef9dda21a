//! `CDN-Cache-Control` (RFC 9213): a dictionary of structured fields (RFC 9651), whose members are
//! directives.
//!
//! It is parsed more strictly than `Cache-Control`. A field that is not a valid dictionary is
//! ignored completely, so that all caches on the way agree about it.

use std::borrow::Cow;

use kirin_http::FieldLines;
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use crate::cache_control::ResponseDirectives;
use crate::directives::CacheDirective;

/// The directives whose value is a number of seconds.
const TIMES: [&str; 4] = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"];

/// Returns the directives of all lines of the field `name`, or `None` if they are not a dictionary.
pub fn parse(fields: &FieldLines, name: &str) -> Option<ResponseDirectives> {
    let lines: Vec<&[u8]> = fields.lines(name).filter(|value| !value.is_empty()).collect();
    let dictionary = Parser::new(&lines.join(&b", "[..])).parse::<Dictionary>().ok()?;
    let mut directives = ResponseDirectives::default();
    for (name, entry) in &dictionary {
        if let Some(directive) = directive(name.as_str(), entry) {
            directives.add(&directive);
        }
    }
    Some(directives)
}

/// Turns a member into a directive. Parameters are ignored. So is a time that is not an integer
/// (RFC 9213 section 2.1). A directive whose value has a wrong type still counts if it forbids
/// something.
fn directive<'a>(name: &'a str, entry: &ListEntry) -> Option<CacheDirective<'a>> {
    let is_time = TIMES.contains(&name);
    let value = match entry {
        ListEntry::Item(item) => match &item.bare_item {
            BareItem::Boolean(false) => return None,
            BareItem::Integer(seconds) if is_time => Some(seconds.to_string()),
            _ if is_time => return None,
            BareItem::String(text) => Some(text.as_str().to_owned()),
            BareItem::Token(token) => Some(token.as_str().to_owned()),
            _ => None,
        },
        ListEntry::InnerList(_) if is_time => return None,
        ListEntry::InnerList(_) => None,
    };
    Some(CacheDirective {
        name: name.as_bytes(),
        value: value.map(|value| Cow::Owned(value.into_bytes())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache_control::DirectiveScope;

    fn parsed(lines: &[&str]) -> Option<ResponseDirectives> {
        let mut fields = FieldLines::new();
        lines.iter().for_each(|line| fields.push("CDN-Cache-Control", line));
        parse(&fields, "cdn-cache-control")
    }

    #[test]
    fn members_are_directives_whatever_parameters_they_have() {
        let time = |max_age| ResponseDirectives { max_age, ..ResponseDirectives::default() };
        for (lines, expected) in [
            (&["max-age=60"][..], time(Some(60))),
            (&["max-age=60;a;b=\"c\""], time(Some(60))),
            (&["foo=(a b);x", "max-age=60"], time(Some(60))),
            (&["max-age=60, max-age=30"], time(Some(30))),
            (&["max-age=-5"], time(Some(0))),
            (&["max-age=60.5"], time(None)),
            (&["max-age=\"60\""], time(None)),
            (&["max-age"], time(None)),
            (&["max-age=60, no-store=?0"], time(Some(60))),
            (&[""], time(None)),
            (&["no-store;a"], ResponseDirectives { no_store: true, ..time(None) }),
            (&["no-store=1"], ResponseDirectives { no_store: true, ..time(None) }),
            (&["private"], ResponseDirectives { private: DirectiveScope::Response, ..time(None) }),
            (
                &["private=x-a"],
                ResponseDirectives {
                    private: DirectiveScope::Fields(vec!["x-a".into()]),
                    ..time(None)
                },
            ),
            (
                &["private=(a b)"],
                ResponseDirectives { private: DirectiveScope::Response, ..time(None) },
            ),
            (
                &["no-cache=\"Set-Cookie, x\""],
                ResponseDirectives {
                    no_cache: DirectiveScope::Fields(vec!["set-cookie".into(), "x".into()]),
                    ..time(None)
                },
            ),
        ] {
            assert_eq!(parsed(lines), Some(expected), "{lines:?}");
        }
    }

    #[test]
    fn a_malformed_dictionary_is_ignored_completely() {
        for lines in [
            &["max-age=60,"][..],
            &["max-age=60 no-store"],
            &["max-age =60"],
            &["max-age= 60"],
            &["Max-Age=60"],
            &["max-age=60, no-store, &"],
            &["max-age=60", "\"x"],
            &["max-age=60, private=\"\u{e9}\""],
            &["max-age=1000000000000000"],
        ] {
            assert_eq!(parsed(lines), None, "{lines:?}");
        }
    }
}
