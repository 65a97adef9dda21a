//! Entity tags that clients send back (RFC 9110 section 8.8.3), compared with one of ours.
//!
//! Used by every place that has entity tags: the store's pages and files.

/// Whether `tag`, a strong tag with its quotes, is in the list of an `If-None-Match`: weak or strong makes no difference.
pub fn weakly_in(tag: &[u8], list: &[u8]) -> bool {
    tags(list).any(|other| other == Tag::Any || other == Tag::Strong(tag) || other == Tag::Weak(tag))
}

/// Whether `tag` is in the list of an `If-Match`: only a strong tag is the same (RFC 9110 section 8.8.3.2).
pub fn strongly_in(tag: &[u8], list: &[u8]) -> bool {
    tags(list).any(|other| other == Tag::Any || other == Tag::Strong(tag))
}

/// A tag of a client, with its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag<'a> {
    /// `*`
    Any,
    Strong(&'a [u8]),
    Weak(&'a [u8]),
}

/// The tags of a list, up to the first that is malformed.
fn tags(list: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = list.trim_ascii();
    // `*` stands alone or not at all.
    let mut any = rest == b"*";
    std::iter::from_fn(move || {
        if std::mem::take(&mut any) {
            return Some(Tag::Any);
        }
        while let [b',' | b' ' | b'\t', tail @ ..] = rest {
            rest = tail;
        }
        let (weak, quoted) = match rest.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let end = quoted_length(quoted)?;
        let (tag, tail) = quoted.split_at(end);
        // Behind a tag comes the end or a comma.
        let tail = tail.trim_ascii_start();
        if !tail.is_empty() && !tail.starts_with(b",") {
            return None;
        }
        rest = tail;
        Some(if weak { Tag::Weak(tag) } else { Tag::Strong(tag) })
    })
}

/// Length of the quoted string at the start. `etagc` is everything visible but `"`; a backslash is itself.
fn quoted_length(input: &[u8]) -> Option<usize> {
    let inside = input.strip_prefix(b"\"")?;
    let end = inside.iter().position(|byte| *byte == b'"' || *byte <= b' ' || *byte == 0x7f)?;
    (inside[end] == b'"').then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_compared_weakly_or_strongly() {
        let tag = b"\"a1,x\"";
        for (list, strongly, weakly) in [
            (r#""a1,x""#, true, true),
            (r#"W/"a1,x""#, false, true),
            (r#"w/"a1,x""#, false, false),
            ("*", true, true),
            (" * ", true, true),
            (r#"*, "q""#, false, false),
            (r#""q", *"#, false, false),
            (r#""q", "a1,x""#, true, true),
            (r#""q","a1,x""#, true, true),
            ("\"q\"\t,\t\"a1,x\"", true, true),
            (r#",, "q",, W/"a1,x" ,"#, false, true),
            (r#""q" "a1,x""#, false, false),
            (r#""q""a1,x""#, false, false),
            (r#""a1", "x""#, false, false),
            (r#"a1,x"#, false, false),
            (r#""a1,x"#, false, false),
            (r#""a1,x""q"#, false, false),
            (r#"W/ "a1,x""#, false, false),
            ("\"", false, false),
            ("", false, false),
            (r#""""#, false, false),
            (r#""a 1", "a1,x""#, false, false),
        ] {
            assert_eq!(strongly_in(tag, list.as_bytes()), strongly, "strongly in {list}");
            assert_eq!(weakly_in(tag, list.as_bytes()), weakly, "weakly in {list}");
        }
    }
}
