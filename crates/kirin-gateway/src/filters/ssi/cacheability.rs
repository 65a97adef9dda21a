//! The cacheability of a page with parts. The strictest of them counts.

use kirin_cache::directives::{CacheDirective, delta_seconds, directives};
use kirin_http::FieldLines;
use kirin_http::date::parse_date;
use kirin_http::field_list::members;
use kirin_http::token::is_token;

/// The restrictions of the parts of a page so far, and whether the page depends on the visitor.
#[derive(Debug, Default)]
pub struct Cacheability {
    no_store: bool,
    no_cache: bool,
    private: bool,
    must_revalidate: bool,
    /// The smallest `max-age`, in seconds.
    max_age: Option<u64>,
    /// The smallest lifetime for shared caches, in seconds.
    shared_max_age: Option<u64>,
    /// The request fields that a part varies by, in lower case.
    vary: Vec<Vec<u8>>,
    is_visitors: bool,
}

impl Cacheability {
    /// Adds the fields of a part. `now` is in seconds since the epoch.
    pub fn add_part(&mut self, fields: &FieldLines, now: u64) {
        let (mut max_age, mut shared_max_age, mut expires) = (None, None, None);
        for (name, value) in fields.iter() {
            if name.eq_ignore_ascii_case(b"cache-control") {
                for directive in directives(value) {
                    let seconds = || delta_seconds(directive.value.as_deref());
                    match &directive.name.to_ascii_lowercase()[..] {
                        b"no-store" => self.no_store = true,
                        b"no-cache" => self.no_cache = true,
                        b"private" => self.private = true,
                        b"must-revalidate" | b"proxy-revalidate" => self.must_revalidate = true,
                        b"max-age" => max_age = Some(seconds()),
                        b"s-maxage" => shared_max_age = Some(seconds()),
                        _ => {}
                    }
                }
            } else if name.eq_ignore_ascii_case(b"expires") {
                // "especially the value "0"", is a time in the past (RFC 9111 section 5.3).
                let until = parse_date(value).unwrap_or(0);
                expires = Some(until.saturating_sub(now));
            } else if name.eq_ignore_ascii_case(b"vary") {
                self.add_vary(value);
            }
        }
        let max_age = max_age.or(expires);
        lower(&mut self.max_age, max_age);
        lower(&mut self.shared_max_age, shared_max_age.or(max_age));
        self.no_cache |= max_age == Some(0);
    }

    /// Adds a part that failed. The page must not be stored, since the next one may be complete.
    pub fn add_failure(&mut self) {
        self.no_store = true;
    }

    /// Adds the visitor's session. The page is private then, whatever it says itself.
    pub fn add_session(&mut self) {
        self.private = true;
    }

    /// Adds a dependency on the visitor.
    pub fn add_visitor(&mut self) {
        self.is_visitors = true;
    }

    fn add_vary(&mut self, value: &[u8]) {
        for member in members(value) {
            let member = member.to_ascii_lowercase();
            // Parts are asked for without a coding.
            if member != b"accept-encoding" && !self.vary.contains(&member) {
                self.vary.push(member);
            }
        }
    }

    fn is_silent(&self) -> bool {
        let flags = self.no_store
            || self.no_cache
            || self.private
            || self.must_revalidate
            || self.is_visitors;
        !flags && self.shared_max_age.is_none() && self.vary.is_empty()
    }

    /// Returns the fields of the page with the restrictions of its parts. A lifetime is only
    /// shortened: a page without one gets none.
    pub fn apply(&self, fields: &FieldLines) -> FieldLines {
        if self.is_silent() {
            return fields.clone();
        }
        let mut applied = FieldLines::new();
        let mut control = Vec::new();
        let mut vary = self.vary.clone();
        let restricts =
            self.no_store || self.no_cache || self.private || self.shared_max_age.is_some();
        for (name, value) in fields.iter() {
            if name.eq_ignore_ascii_case(b"cache-control") {
                control.extend(directives(value));
                continue;
            }
            if name.eq_ignore_ascii_case(b"expires") && restricts {
                continue;
            }
            if name.eq_ignore_ascii_case(b"vary") {
                vary.retain(|ours| !members(value).any(|theirs| theirs.eq_ignore_ascii_case(ours)));
            }
            // It was a field line before.
            let _ = applied.try_push(name, value);
        }
        let control = self.applied_control(control);
        if !control.is_empty() {
            let _ = applied.try_push(b"Cache-Control", &control);
        }
        if !vary.is_empty() {
            let _ = applied.try_push(b"Vary", &vary.join(&b", "[..]));
        }
        applied
    }

    fn applied_control(&self, control: Vec<CacheDirective<'_>>) -> Vec<u8> {
        let says = |wanted: &str| control.iter().any(|directive| directive.is(wanted));
        let is_for_all = says("public") || says("s-maxage");
        let is_private = self.private || self.no_store || (self.is_visitors && !is_for_all);
        let mut applied: Vec<Vec<u8>> = Vec::new();
        for directive in &control {
            let name = directive.name.to_ascii_lowercase();
            let value = directive.value.as_deref();
            let limit = match &name[..] {
                b"public" | b"s-maxage" if is_private => continue,
                b"max-age" => self.max_age,
                b"s-maxage" => self.shared_max_age,
                _ => None,
            };
            applied.push(match (limit, value) {
                (Some(limit), value) => {
                    [&name, format!("={}", limit.min(delta_seconds(value))).as_bytes()].concat()
                }
                (None, Some(value)) => [&name, &b"="[..], &written(value)].concat(),
                (None, None) => name,
            });
        }
        for (wanted, is_wanted) in [
            (&b"private"[..], is_private && !self.no_store && !says("no-store")),
            (b"no-cache", self.no_cache && !self.no_store),
            (b"no-store", self.no_store),
            (b"must-revalidate", self.must_revalidate && !self.no_store),
        ] {
            if is_wanted && !applied.iter().any(|directive| directive == wanted) {
                applied.push(wanted.to_vec());
            }
        }
        applied.join(&b", "[..])
    }
}

/// Returns whether a response is for one visitor, or must not be stored.
pub fn is_private(fields: &FieldLines) -> bool {
    let mut controls =
        fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"cache-control"));
    controls.any(|(_, value)| {
        directives(value).any(|directive| directive.is("private") || directive.is("no-store"))
    })
}

fn lower(smallest: &mut Option<u64>, other: Option<u64>) {
    *smallest = smallest.iter().copied().chain(other).min();
}

/// Returns the value of a directive as it is written in a field: a token, or a quoted string.
fn written(value: &[u8]) -> Vec<u8> {
    if is_token(value) {
        return value.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::test_fields::{lines, text};

    /// Checks the fields of a page with parts that have these fields.
    #[test]
    fn the_strictest_of_page_and_parts_decides_about_caching() {
        for (page, parts, whole) in [
            ("A: b", &[][..], "A: b"),
            ("Cache-Control: max-age=60", &[], "Cache-Control: max-age=60"),
            ("Cache-Control: public, max-age=60", &["A: b"], "Cache-Control: public, max-age=60"),
            (
                "Cache-Control: public, max-age=60",
                &["Cache-Control: max-age=5", "Cache-Control: max-age=90"],
                "Cache-Control: public, max-age=5",
            ),
            (
                "Cache-Control: max-age=60",
                &["Cache-Control: private"],
                "Cache-Control: max-age=60, private",
            ),
            (
                "Cache-Control: Public, s-maxage=90, max-age=60",
                &["cache-control: Private"],
                "Cache-Control: max-age=60, private",
            ),
            ("Cache-Control: private", &["Cache-Control: private"], "Cache-Control: private"),
            ("A: b", &["Cache-Control: no-store"], "A: b\nCache-Control: no-store"),
            (
                "Cache-Control: public",
                &["Cache-Control: no-store, no-cache"],
                "Cache-Control: no-store",
            ),
            ("A: b", &["Cache-Control: no-cache"], "A: b\nCache-Control: no-cache"),
            // A page without a lifetime gets none.
            ("A: b", &["Cache-Control: max-age=5"], "A: b"),
            ("A: b", &["Cache-Control: max-age=0"], "A: b\nCache-Control: no-cache"),
            (
                "Cache-Control: s-maxage=90, max-age=60",
                &["Cache-Control: max-age=70"],
                "Cache-Control: s-maxage=70, max-age=60",
            ),
            (
                "Cache-Control: s-maxage=90",
                &["Cache-Control: max-age=0, s-maxage=80, must-revalidate"],
                "Cache-Control: s-maxage=80, no-cache, must-revalidate",
            ),
            (
                "Cache-Control: max-age=60",
                &["Cache-Control: max-age=x"],
                "Cache-Control: max-age=0, no-cache",
            ),
            (
                "Cache-Control: no-cache=\"a,private\", x=y",
                &["Cache-Control: max-age=\"7\""],
                "Cache-Control: no-cache=\"a,private\", x=y",
            ),
            // `Expires` of a part is a lifetime. The page's own would be longer.
            ("Expires: Sun, 06 Nov 1994 09:00:00 GMT", &["Cache-Control: max-age=5"], ""),
            ("Expires: 0", &["A: b"], "Expires: 0"),
            (
                "Cache-Control: max-age=60",
                &["Expires: Sun, 06 Nov 1994 08:49:47 GMT"],
                "Cache-Control: max-age=10",
            ),
            ("A: b", &["Expires: 0"], "A: b\nCache-Control: no-cache"),
            (
                "Cache-Control: x=\"y\\\"\\\\, z\"",
                &["Cache-Control: private"],
                "Cache-Control: x=\"y\\\"\\\\, z\", private",
            ),
            // Vary.
            ("Vary: Cookie", &["Vary: cookie, Accept-Encoding"], "Vary: Cookie"),
            ("Vary: A", &["Vary: B, C", "Vary: c"], "Vary: A\nVary: b, c"),
        ] {
            let mut cacheability = Cacheability::default();
            for part in parts {
                cacheability.add_part(&lines(part), 784_111_777);
            }
            assert_eq!(text(&cacheability.apply(&lines(page))), whole, "{page} with {parts:?}");
        }
    }

    #[test]
    fn a_page_for_one_visitor_is_private_unless_it_says_otherwise() {
        for (page, whole) in [
            ("A: b", "A: b\nCache-Control: private"),
            ("Cache-Control: max-age=5", "Cache-Control: max-age=5, private"),
            ("Cache-Control: no-store", "Cache-Control: no-store"),
            ("Cache-Control: private", "Cache-Control: private"),
            ("Cache-Control: public", "Cache-Control: public"),
            ("Cache-Control: s-maxage=5", "Cache-Control: s-maxage=5"),
        ] {
            let mut cacheability = Cacheability::default();
            cacheability.add_visitor();
            assert_eq!(text(&cacheability.apply(&lines(page))), whole, "{page}");
        }
    }

    #[test]
    fn a_page_with_a_session_is_always_private() {
        for (page, whole) in [
            ("A: b", "A: b\nCache-Control: private"),
            ("Cache-Control: public, max-age=60", "Cache-Control: max-age=60, private"),
            ("Cache-Control: s-maxage=5", "Cache-Control: private"),
            ("Cache-Control: no-store", "Cache-Control: no-store"),
        ] {
            let mut cacheability = Cacheability::default();
            cacheability.add_session();
            assert_eq!(text(&cacheability.apply(&lines(page))), whole, "{page}");
        }
    }

    #[test]
    fn a_page_with_a_missing_part_is_not_cacheable() {
        let mut cacheability = Cacheability::default();
        cacheability.add_failure();
        let page = lines("Cache-Control: public, max-age=60");
        assert_eq!(text(&cacheability.apply(&page)), "Cache-Control: max-age=60, no-store");
    }
}
