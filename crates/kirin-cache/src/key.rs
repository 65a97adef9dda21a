//! Keys of what is stored: the target first, so that a path and all below it can be purged by a
//! prefix.
//!
//! They begin with a NUL, which no key of memcached's text protocol can (and no request target
//! does): nobody meets a cached response by accident, neither with `get` nor with a GET of that
//! name.

use kirin_http::percent;

/// What all keys begin with.
pub const NAMESPACE: &[u8] = b"\0c";

/// The longest tag that the store takes.
const TAG_LIMIT_BYTES: usize = 250;

/// The key of a target on a host: path and query, then scheme and host. The host is as it was asked
/// for: a place may answer `EXAMPLE.org` otherwise than `example.org`, and one who asks for the
/// first must not choose for the others.
pub fn primary_key(path: &str, query: Option<&str>, secure: bool, host: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(path.len() + query.map_or(0, str::len) + host.len() + 8);
    key.extend_from_slice(NAMESPACE);
    append_target(path, query, &mut key);
    key.push(0);
    key.push(if secure { b's' } else { b'p' });
    key.extend_from_slice(host.as_bytes());
    key
}

/// Appends to a primary key what a trusted proxy tells of the site in the field `name`, which the
/// place sees as well. No value holds the byte between them.
pub fn append_told(name: &str, value: &[u8], key: &mut Vec<u8>) {
    key.push(1);
    key.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
    key.push(b'=');
    key.extend_from_slice(value);
}

/// The tag that every stored response to a target carries, whatever host it was asked by and
/// whatever it varies by. `target` is path and query as a client sends them. Who purges the key
/// `/path` of the store invalidates this tag, too.
fn target_tag(target: &[u8]) -> Vec<u8> {
    let mut tag = NAMESPACE.to_vec();
    if NAMESPACE.len() + target.len() <= TAG_LIMIT_BYTES {
        tag.extend_from_slice(target);
        return tag;
    }
    // Two long targets that share a tag are purged together, which costs a request.
    let (start, rest) = target.split_at(TAG_LIMIT_BYTES - NAMESPACE.len() - 17);
    tag.extend_from_slice(start);
    tag.push(0);
    tag.extend_from_slice(format!("{:016x}", fnv1a(rest)).as_bytes());
    tag
}

/// The tags by which everything that is stored of a target is purged: that of the target as it is
/// spelt, and that of its normal form, if it is another. A client may spell it one way, and who
/// purges another.
pub fn target_tags(target: &[u8]) -> Vec<Vec<u8>> {
    let (own, normal) = (target_tag(target), target_tag(&percent::normalize(target)));
    if own == normal { vec![own] } else { vec![own, normal] }
}

/// The tags of the target in a primary key.
pub fn target_tags_of(primary_key: &[u8]) -> Vec<Vec<u8>> {
    let target = primary_key.get(NAMESPACE.len()..).unwrap_or_default();
    target_tags(target.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// The prefix of the keys of all targets that begin with `target`. Who purges a prefix of the store
/// invalidates this one, too.
pub fn target_prefix(target: &[u8]) -> Vec<u8> {
    [NAMESPACE, target].concat()
}

/// `query` without the arguments of these names; a name that ends in `*` is a beginning. `None` if
/// nothing is left.
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
            primary_key("/a", Some("b=c"), true, "example.org:8"),
            b"\0c/a?b=c\0sexample.org:8"
        );
        assert_ne!(
            primary_key("/a", None, true, "EXAMPLE.org"),
            primary_key("/a", None, true, "example.org")
        );
        assert_eq!(primary_key("/a", None, false, "x"), b"\0c/a\0px");
        assert_ne!(primary_key("/a", Some(""), false, "x"), primary_key("/a", None, false, "x"));
        assert!(primary_key("/a/b", None, false, "x").starts_with(&target_prefix(b"/a/")));
    }

    #[test]
    fn a_tag_is_the_target_s_whatever_the_host() {
        let tag = target_tag(b"/a?b=c");
        assert_eq!(tag, b"\0c/a?b=c");
        assert_eq!(target_tags_of(&primary_key("/a", Some("b=c"), true, "one")), [tag]);
        let long = format!("/{}", "x".repeat(1000));
        let tag = target_tag(long.as_bytes());
        assert_eq!(tag.len(), TAG_LIMIT_BYTES);
        assert_eq!(
            target_tags_of(&primary_key(&long, None, false, "one")),
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
            // A path holds no `?`; what looks like one below is the query's beginning.
            let of = |path: &str| match path.split_once('?') {
                Some((path, query)) => primary_key(path, Some(query), false, &host),
                None => primary_key(path, None, false, &host),
            };
            prop_assert_eq!(of(&path) == of(&other), path == other);
            prop_assert_ne!(primary_key("/", Some(&query), true, &host), primary_key("/", Some(&query), false, &host));
        }
    }
}
