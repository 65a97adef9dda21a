//! Values of fields that are lists: members with commas between (RFC 9110 section 5.6.1).
//!
//! For lists whose members are tokens, such as `Vary`, `Connection` and `Range`; where members may
//! be quoted strings, a comma need not end one (`Cache-Control`: `kirin_cache::directives`).

/// Returns the members, without the white space around them. "A recipient MUST parse and ignore a
/// reasonable number of empty list elements" (section 5.6.1.2).
pub fn members(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_without_space_and_empty_ones_not_at_all() {
        for (list, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            (" a ,b,\tc d\t", &["a", "b", "c d"]),
            (",, a,  ,b,", &["a", "b"]),
        ] {
            let found: Vec<_> = members(list.as_bytes()).collect();
            let expected: Vec<_> = expected.iter().map(|member| member.as_bytes()).collect();
            assert_eq!(found, expected, "{list:?}");
        }
    }
}
