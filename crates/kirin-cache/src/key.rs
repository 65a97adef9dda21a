//! Keys of stored responses. The target comes first, so that a path and everything below it can be
//! purged by a prefix. Before it is the prefix of the site's namespace in the store, if it has one.
//!
//! Each key begins with a NUL. No key of memcached's text protocol and no request target can begin
//! so. Therefore a memcached `get` or an HTTP GET never finds a cached response by accident.

use kirin_http::percent;

/// The start of all keys.
pub const CACHED: &[u8] = b"\0c";

/// The longest tag of the store in bytes.
const TAG_LIMIT_BYTES: usize = 250;

/// Returns the key of a target on a host: path and query, then scheme and host. `namespace` is the
/// start of all keys of the site; it has no NUL.
///
/// The host keeps the case of the request. An origin server may answer `EXAMPLE.org` and
/// `example.org` differently. A client that requests the first must not choose the response for
/// clients of the second.
pub fn primary_key(
    namespace: &str,
    path: &str,
    query: Option<&str>,
    secure: bool,
    host: &str,
) -> Vec<u8> {
    let target_bytes = path.len() + query.map_or(0, str::len);
    let mut key = Vec::with_capacity(namespace.len() + target_bytes + host.len() + 8);
    key.extend_from_slice(CACHED);
    key.extend_from_slice(namespace.as_bytes());
    append_target(path, query, &mut key);
    key.push(0);
    key.push(if secure { b's' } else { b'p' });
    key.extend_from_slice(host.as_bytes());
    key
}

/// Appends the field `name`, in which a trusted proxy describes the site, to a primary key. The
/// origin server sees the field, too. No value contains the separator byte.
pub fn append_proxy_field(name: &str, value: &[u8], key: &mut Vec<u8>) {
    key.push(1);
    key.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
    key.push(b'=');
    key.extend_from_slice(value);
}

/// Appends a condition of the route to a primary key: other routes have other keys.
pub fn append_route_condition(name: &str, value: &str, key: &mut Vec<u8>) {
    key.push(2);
    key.extend_from_slice(name.as_bytes());
    key.push(b'=');
    key.extend_from_slice(value.as_bytes());
}

/// Returns the tag of all stored responses to a target, for any host of the site and any variant.
/// `target` is path and query as a client sends them, behind the site's namespace. Purging the key
/// `/path` of the store also invalidates this tag.
fn target_tag(target: &[u8]) -> Vec<u8> {
    let mut tag = CACHED.to_vec();
    if CACHED.len() + target.len() <= TAG_LIMIT_BYTES {
        tag.extend_from_slice(target);
        return tag;
    }
    // Two long targets with the same tag are purged together. That only costs a request.
    let (start, rest) = target.split_at(TAG_LIMIT_BYTES - CACHED.len() - 17);
    tag.extend_from_slice(start);
    tag.push(0);
    tag.extend_from_slice(format!("{:016x}", fnv1a(rest)).as_bytes());
    tag
}

/// Returns the tags that purge all stored responses to a target. One is for the target as it is
/// written, the other for its normalized form, if that differs. The client and the purge may write
/// the same target differently.
pub fn target_tags(target: &[u8]) -> Vec<Vec<u8>> {
    let (own, normal) = (target_tag(target), target_tag(&percent::normalize(target)));
    if own == normal { vec![own] } else { vec![own, normal] }
}

/// Returns the tags of the target in a primary key.
pub fn target_tags_of(primary_key: &[u8]) -> Vec<Vec<u8>> {
    let target = primary_key.get(CACHED.len()..).unwrap_or_default();
    target_tags(target.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Returns the key prefix of all targets that start with `target`. Purging a prefix of the store
/// also invalidates this one.
pub fn target_prefix(target: &[u8]) -> Vec<u8> {
    [CACHED, target].concat()
}

/// Removes the arguments with these names from `query`. A name that ends in `*` is a prefix.
/// Returns `None` if nothing is left.
pub fn without_arguments(query: &str, ignored: &[String]) -> Option<String> {
    let is_ignored = |argument: &&str| {
        let name = argument.split('=').next().unwrap_or(argument);
        ignored.iter().any(|ignored| match ignored.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == ignored,
        })
    };
    let kept: Vec<&str> = query.split('&').filter(|argument| !is_ignored(argument)).collect();
    (!kept.is_empty() && kept != [""]).then(|| kept.join("&"))
}

fn append_target(path: &str, query: Option<&str>, key: &mut Vec<u8>) {
    key.extend_from_slice(path.as_bytes());
    if let Some(query) = query {
        key.push(b'?');
        key.extend_from_slice(query.as_bytes());
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_has_target_scheme_and_host() {
        assert_eq!(
            primary_key("", "/a", Some("b=c"), true, "example.org:8"),
            b"\0c/a?b=c\0sexample.org:8"
        );
        assert_ne!(
            primary_key("", "/a", None, true, "EXAMPLE.org"),
            primary_key("", "/a", None, true, "example.org")
        );
        assert_eq!(primary_key("", "/a", None, false, "x"), b"\0c/a\0px");
        assert_ne!(
            primary_key("", "/a", Some(""), false, "x"),
            primary_key("", "/a", None, false, "x")
        );
        assert!(primary_key("", "/a/b", None, false, "x").starts_with(&target_prefix(b"/a/")));
    }

    #[test]
    fn a_condition_of_the_route_makes_another_key_with_the_same_tags() {
        let plain = primary_key("", "/a", Some("b"), false, "example.org");
        let with = |value| {
            let mut key = plain.clone();
            append_route_condition("allow", value, &mut key);
            key
        };
        assert!(with("1") != plain && with("1") != with("2"));
        assert_eq!(target_tags_of(&with("1")), target_tags_of(&plain));
    }

    #[test]
    fn the_tag_of_a_target_does_not_depend_on_the_host() {
        let tag = target_tag(b"/a?b=c");
        assert_eq!(tag, b"\0c/a?b=c");
        assert_eq!(target_tags_of(&primary_key("", "/a", Some("b=c"), true, "one")), [tag]);
        let long = format!("/{}", "x".repeat(1000));
        let tag = target_tag(long.as_bytes());
        assert_eq!(tag.len(), TAG_LIMIT_BYTES);
        assert_eq!(
            target_tags_of(&primary_key("", &long, None, false, "one")),
            std::slice::from_ref(&tag)
        );
        assert_ne!(target_tag(format!("{long}y").as_bytes()), tag);
    }

    #[test]
    fn arguments_can_be_left_out() {
        let ignored = ["utm_*".to_owned(), "fbclid".to_owned()];
        for (query, expected) in [
            ("a=1&utm_source=x&b", Some("a=1&b")),
            ("fbclid=x", None),
            ("fbclid", None),
            ("fbclids=x", Some("fbclids=x")),
            ("", None),
            ("utm_a&utm_b=c", None),
            ("a=utm_b", Some("a=utm_b")),
        ] {
            assert_eq!(without_arguments(query, &ignored).as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn spellings_that_mean_the_same_share_a_tag() {
        for (one, other, is_same) in [
            ("/%e3%81%82", "/%E3%81%82", true),
            ("/%7Eme?q=%61", "/~me?q=a", true),
            ("/a%2fb", "/a/b", false),
            ("/a%2fb", "/a%2Fb", true),
            ("/a%", "/a%25", false),
            ("/a%4", "/a%4", true),
            ("/a%zz", "/a%ZZ", false),
            ("/%2561", "/%61", false),
        ] {
            let (one, other) = (target_tags(one.as_bytes()), target_tags(other.as_bytes()));
            assert_eq!(one.iter().any(|tag| other.contains(tag)), is_same, "{one:?} {other:?}");
        }
    }

    proptest! {
        #[test]
        fn two_targets_share_no_key(
            path in "/[a-z?]{0,3}", other in "/[a-z?]{0,3}", query in "[a-z]{0,2}", host in "[a-z]{0,2}",
        ) {
            // A path contains no `?`. In these strings it starts the query.
            let of = |path: &str| match path.split_once('?') {
                Some((path, query)) => primary_key("", path, Some(query), false, &host),
                None => primary_key("", path, None, false, &host),
            };
            prop_assert_eq!(of(&path) == of(&other), path == other);
            prop_assert_ne!(primary_key("", "/", Some(&query), true, &host), primary_key("", "/", Some(&query), false, &host));
        }
    }
}
