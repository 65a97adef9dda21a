//! `Cache-Control` of requests and responses (RFC 9111 section 5.2, RFC 5861). If directives
//! contradict each other or occur twice, the strictest one counts.

use httparse::Header;
use kirin_http::FieldLines;
use kirin_http::field_list::members;
use kirin_http::token::is_token_byte;

use crate::directives::{CacheDirective, delta_seconds, directives};
use crate::policy::Staleness;

/// The cache directives of a request (section 5.2.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// Only a response that was validated for this request is acceptable.
    pub no_cache: bool,
    /// The response must not be stored.
    pub no_store: bool,
    /// Only a stored response is acceptable, or 504.
    pub only_if_cached: bool,
    /// The greatest acceptable age in seconds.
    pub max_age: Option<u64>,
    /// The time in seconds for which the response must stay fresh.
    pub min_fresh: Option<u64>,
    /// The longest acceptable staleness in seconds. `u64::MAX` means any.
    pub max_stale: Option<u64>,
}

impl RequestDirectives {
    /// Reads the directives of a request. `Pragma: no-cache` counts if there is no `Cache-Control`
    /// (section 5.4).
    pub fn from_fields(fields: &[Header<'_>]) -> Self {
        let mut found = Self::default();
        let (mut has_cache_control, mut has_pragma) = (false, false);
        for field in fields {
            if field.name.eq_ignore_ascii_case("cache-control") {
                has_cache_control = true;
                directives(field.value).for_each(|directive| found.add(&directive));
            } else if field.name.eq_ignore_ascii_case("pragma") {
                has_pragma |= directives(field.value).any(|directive| directive.is("no-cache"));
            }
        }
        found.no_cache |= has_pragma && !has_cache_control;
        found
    }

    fn add(&mut self, directive: &CacheDirective<'_>) {
        let seconds = || delta_seconds(directive.value.as_deref());
        match directive.name.to_ascii_lowercase().as_slice() {
            b"no-cache" => self.no_cache = true,
            b"no-store" => self.no_store = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => shorten(&mut self.max_age, seconds()),
            b"min-fresh" => self.min_fresh = Some(self.min_fresh.unwrap_or(0).max(seconds())),
            b"max-stale" => {
                shorten(
                    &mut self.max_stale,
                    directive.value.as_ref().map_or(u64::MAX, |_| seconds()),
                );
            }
            _ => {}
        }
    }

    /// Drops the directives that only cause requests to the origin server.
    #[must_use]
    pub fn without_reload(self) -> Self {
        Self { no_cache: false, max_age: None, min_fresh: None, ..self }
    }
}

/// The scope of `no-cache` or `private`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DirectiveScope {
    /// The directive is missing.
    #[default]
    Nothing,
    /// The directive concerns only the fields of these names, in lower case.
    Fields(Vec<String>),
    /// The directive concerns the complete response.
    Response,
}

impl DirectiveScope {
    fn add(&mut self, value: Option<&[u8]>) {
        let value = value.unwrap_or_default();
        let names: Vec<String> =
            members(value).map(|name| String::from_utf8_lossy(name).to_ascii_lowercase()).collect();
        let are_names = names.iter().all(|name| name.bytes().all(is_token_byte));
        match self {
            // Without names it concerns the complete response (section 5.2.2.4). So does a
            // malformed list of names, because this is the stricter reading.
            _ if names.is_empty() || !are_names => *self = DirectiveScope::Response,
            DirectiveScope::Response => {}
            DirectiveScope::Nothing => *self = DirectiveScope::Fields(names),
            DirectiveScope::Fields(fields) => fields.extend(names),
        }
    }

    /// Returns the names of the fields that the directive concerns.
    pub fn fields(&self) -> &[String] {
        match self {
            DirectiveScope::Fields(names) => names,
            DirectiveScope::Nothing | DirectiveScope::Response => &[],
        }
    }
}

/// The cache directives of a response (section 5.2.2, RFC 5861).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// The response must not be stored.
    pub no_store: bool,
    /// The response may be stored, but each reuse must be validated.
    pub no_cache: DirectiveScope,
    /// The response is for a single user.
    pub private: DirectiveScope,
    /// The response may be stored by shared caches.
    pub public: bool,
    /// The response must never be reused when stale.
    pub must_revalidate: bool,
    /// A shared cache must never reuse the response when stale.
    pub proxy_revalidate: bool,
    /// Only a cache that understands the status may store the response. Then `no-store` does not
    /// count.
    pub must_understand: bool,
    /// The freshness lifetime in seconds.
    pub max_age: Option<u64>,
    /// The freshness lifetime in shared caches, in seconds.
    pub s_maxage: Option<u64>,
    /// How long, in seconds, the stale response may be reused while it is revalidated.
    pub stale_while_revalidate: Option<u64>,
    /// How long, in seconds, the stale response may be reused in place of an error.
    pub stale_if_error: Option<u64>,
}

impl ResponseDirectives {
    /// Reads the directives of all lines of the field `name`.
    pub fn from_fields(fields: &FieldLines, name: &str) -> Self {
        let mut found = Self::default();
        for value in fields.lines(name) {
            found.add_list(value);
        }
        found
    }

    /// Reads the directives of a list.
    pub fn parse(list: &[u8]) -> Self {
        let mut found = Self::default();
        found.add_list(list);
        found
    }

    fn add_list(&mut self, list: &[u8]) {
        directives(list).for_each(|directive| self.add(&directive));
    }

    pub(crate) fn add(&mut self, directive: &CacheDirective<'_>) {
        let value = directive.value.as_deref();
        match directive.name.to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache.add(value),
            b"private" => self.private.add(value),
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand = true,
            b"max-age" => shorten(&mut self.max_age, delta_seconds(value)),
            b"s-maxage" => shorten(&mut self.s_maxage, delta_seconds(value)),
            b"stale-while-revalidate" => {
                shorten(&mut self.stale_while_revalidate, delta_seconds(value))
            }
            b"stale-if-error" => shorten(&mut self.stale_if_error, delta_seconds(value)),
            _ => {}
        }
    }

    /// Returns whether a shared cache may reuse the stale response (sections 5.2.2.2, 5.2.2.8 and
    /// 5.2.2.10).
    pub fn staleness(&self) -> Staleness {
        if self.must_revalidate || self.proxy_revalidate {
            Staleness::Forbidden
        } else if self.s_maxage.is_some() {
            Staleness::AsDirected
        } else {
            Staleness::Allowed
        }
    }
}

fn shorten(time: &mut Option<u64>, seconds: u64) {
    *time = Some(time.map_or(seconds, |other| other.min(seconds)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_strictest_of_repeated_response_directives_counts() {
        let found = ResponseDirectives::parse(
            b"Public, MAX-AGE=60, max-age=\"30\", s-maxage=9, no-cache=\"Set-Cookie, X\", no-cache=y, \
              private, private=\"z\", stale-while-revalidate=5, stale-if-error=x, must-revalidate",
        );
        let expected = ResponseDirectives {
            public: true,
            max_age: Some(30),
            s_maxage: Some(9),
            no_cache: DirectiveScope::Fields(vec!["set-cookie".into(), "x".into(), "y".into()]),
            private: DirectiveScope::Response,
            stale_while_revalidate: Some(5),
            stale_if_error: Some(0),
            must_revalidate: true,
            ..ResponseDirectives::default()
        };
        assert_eq!(found, expected);
        assert_eq!(
            ResponseDirectives::parse(b"private=\"a\", private").private,
            DirectiveScope::Response
        );
        assert_eq!(ResponseDirectives::parse(b"no-cache=\"\"").no_cache, DirectiveScope::Response);
        for open in ["private=\"set-cookie, max-age=9", "private=\"a b\"", "private=\"\u{e9}\""] {
            assert_eq!(
                ResponseDirectives::parse(open.as_bytes()).private,
                DirectiveScope::Response,
                "{open}"
            );
        }
    }

    #[test]
    fn several_lines_are_one_list() {
        let mut fields = FieldLines::new();
        fields.push("Cache-Control", "max-age=60");
        fields.push("X", "no-store");
        fields.push("cache-control", "private");
        let found = ResponseDirectives::from_fields(&fields, "cache-control");
        assert_eq!(
            (found.max_age, found.private, found.no_store),
            (Some(60), DirectiveScope::Response, false)
        );
    }

    #[test]
    fn the_strictest_of_repeated_request_directives_counts() {
        let of = |lines: &[(&'static str, &'static str)]| {
            let headers: Vec<_> = lines
                .iter()
                .map(|(name, value)| Header { name, value: value.as_bytes() })
                .collect();
            RequestDirectives::from_fields(&headers)
        };
        let none = RequestDirectives::default();
        for (lines, expected) in [
            (&[("Accept", "no-cache")][..], none.clone()),
            (&[("Pragma", "no-cache")], RequestDirectives { no_cache: true, ..none.clone() }),
            (
                &[("Pragma", "no-cache"), ("Cache-Control", "max-age=5")],
                RequestDirectives { max_age: Some(5), ..none.clone() },
            ),
            (
                &[
                    ("cache-control", "max-age=5, max-age=3"),
                    ("Cache-Control", "min-fresh=1, min-fresh=2"),
                ],
                RequestDirectives { max_age: Some(3), min_fresh: Some(2), ..none.clone() },
            ),
            (
                &[("Cache-Control", "max-stale")],
                RequestDirectives { max_stale: Some(u64::MAX), ..none.clone() },
            ),
            (
                &[("Cache-Control", "max-stale, max-stale=4")],
                RequestDirectives { max_stale: Some(4), ..none.clone() },
            ),
            (
                &[("Cache-Control", "only-if-cached, no-store, no-cache")],
                RequestDirectives {
                    only_if_cached: true,
                    no_store: true,
                    no_cache: true,
                    ..none.clone()
                },
            ),
        ] {
            assert_eq!(of(lines), expected, "{lines:?}");
        }
    }

    proptest! {
        /// Checks that more directives never make the result less strict.
        #[test]
        fn an_additional_directive_never_makes_a_response_more_cacheable(
            first in "(no-store|private|max-age=[0-9]{1,3}|no-cache|x)(, ?(max-age=[0-9]{1,3}|private=\"[a-z]\"|must-revalidate))*",
            more in "(max-age=[0-9]{1,3}|no-cache=\"[a-z]\"|no-store|must-revalidate|s-maxage=[0-9]{1,2})",
        ) {
            let one = ResponseDirectives::parse(first.as_bytes());
            let both = ResponseDirectives::parse(format!("{first}, {more}").as_bytes());
            prop_assert!(both.no_store >= one.no_store);
            prop_assert!(one.staleness() != Staleness::Forbidden || both.staleness() == Staleness::Forbidden);
            prop_assert!(one.private != DirectiveScope::Response || both.private == DirectiveScope::Response);
            prop_assert!(one.no_cache != DirectiveScope::Response || both.no_cache == DirectiveScope::Response);
            if let Some(seconds) = one.max_age {
                prop_assert!(both.max_age.is_some_and(|both| both <= seconds));
            }
        }
    }
}
