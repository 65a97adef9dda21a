//! Fields that an application addresses to the cache in front of it and to nothing else.
//! `Surrogate-Key` and `Cache-Tag` have names to purge by. `Surrogate-Control`, and
//! `CDN-Cache-Control` of RFC 9213, have the freshness.

use kirin_http::FieldLines;

use crate::cache_control::ResponseDirectives;
use crate::targeted;

/// Fields that this cache consumes and does not forward.
const CONSUMED: [&str; 3] = ["surrogate-key", "cache-tag", "surrogate-control"];

/// Fields that replace `Cache-Control`. The first one that is present counts. `CDN-Cache-Control`
/// is forwarded, because another CDN may be in front of this cache.
pub(crate) const TARGETED: [&str; 2] = ["surrogate-control", "cdn-cache-control"];

/// Returns the names by which a response can be purged. `Surrogate-Key` is separated by spaces,
/// `Cache-Tag` by commas.
pub fn tags(fields: &FieldLines) -> Vec<&[u8]> {
    let mut tags: Vec<&[u8]> = Vec::new();
    for (name, value) in fields.iter() {
        let is_separator: fn(&u8) -> bool = if name.eq_ignore_ascii_case(b"surrogate-key") {
            u8::is_ascii_whitespace
        } else if name.eq_ignore_ascii_case(b"cache-tag") {
            |byte| *byte == b','
        } else {
            continue;
        };
        let parts = value.split(is_separator).map(<[u8]>::trim_ascii).filter(|tag| !tag.is_empty());
        tags.extend(parts);
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// Returns the directives of the targeted field that counts (RFC 9213 section 2.2). A field without
/// a known directive is ignored.
pub fn targeted_directives(fields: &FieldLines) -> Option<ResponseDirectives> {
    TARGETED
        .iter()
        .filter(|name| fields.get(name).is_some())
        .filter_map(|name| directives_in(fields, name))
        .find(|directives| *directives != ResponseDirectives::default())
}

/// Returns the directives of a cache field, or `None` if it is malformed and does not count.
/// `Surrogate-Control` is older than structured fields, so it is parsed as `Cache-Control` is.
pub(crate) fn directives_in(fields: &FieldLines, name: &str) -> Option<ResponseDirectives> {
    match name {
        "cdn-cache-control" => targeted::parse(fields, name),
        _ => Some(ResponseDirectives::from_fields(fields, name)),
    }
}

/// Removes the fields that the client must not see.
pub fn remove_consumed(fields: &mut FieldLines) {
    for name in CONSUMED {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[(&'static str, &'static str)]) -> FieldLines {
        let mut fields = FieldLines::new();
        text.iter().for_each(|(name, value)| fields.push(name, value));
        fields
    }

    #[test]
    fn tags_are_taken_from_both_fields_without_duplicates() {
        let fields = lines(&[
            ("Surrogate-Key", "post-1  front"),
            ("X", "no"),
            ("Cache-Tag", "front, all posts ,"),
            ("surrogate-key", ""),
        ]);
        assert_eq!(tags(&fields), [&b"all posts"[..], b"front", b"post-1"]);
    }

    #[test]
    fn surrogate_control_overrides_cdn_cache_control() {
        let max_age = |fields: &[(&'static str, &'static str)]| {
            targeted_directives(&lines(fields)).map(|directives| directives.max_age)
        };
        assert_eq!(max_age(&[("Cache-Control", "max-age=1")]), None);
        let both = [
            ("CDN-Cache-Control", "max-age=2"),
            ("Surrogate-Control", "max-age=3, content=\"ESI/1.0\""),
        ];
        assert_eq!(max_age(&both), Some(Some(3)));
        assert_eq!(
            max_age(&[("Surrogate-Control", ""), ("CDN-Cache-Control", "max-age=2")]),
            Some(Some(2))
        );
    }

    #[test]
    fn fields_for_kirin_are_not_passed_on() {
        let mut fields = lines(&[
            ("Surrogate-Key", "a"),
            ("CDN-Cache-Control", "max-age=2"),
            ("Cache-Tag", "b"),
            ("Surrogate-Control", "max-age=3"),
        ]);
        remove_consumed(&mut fields);
        assert_eq!(
            fields.iter().collect::<Vec<_>>(),
            [(&b"CDN-Cache-Control"[..], &b"max-age=2"[..])]
        );
    }
}
