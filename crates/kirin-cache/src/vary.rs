//! `Vary`: what in a request chooses among the responses of one target (RFC 9111 section 4.1).

use httparse::Header;
use kirin_http::FieldLines;
use kirin_http::field_list::members;

/// Names that one response may vary by at most.
const MAX_NAMES: usize = 16;

/// What responses to a target vary by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// By these request fields: in lower case, sorted, each once. None for all requests alike.
    By(Vec<String>),
    /// By what no request shows (`*`), or by more than we look at: never the answer to another request.
    Any,
}

impl Vary {
    /// What a response says.
    pub fn of(fields: &FieldLines) -> Self {
        let mut names = Vec::new();
        for (_, value) in fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"vary")) {
            for name in members(value) {
                let is_name = name.iter().all(|byte| byte.is_ascii_graphic());
                if name == b"*" || !is_name {
                    return Vary::Any;
                }
                names.push(String::from_utf8_lossy(name).to_ascii_lowercase());
            }
        }
        names.sort_unstable();
        names.dedup();
        if names.len() > MAX_NAMES { Vary::Any } else { Vary::By(names) }
    }

    /// Whether requests with another `Cookie` get another response.
    pub fn tells_cookies_apart(&self) -> bool {
        matches!(self, Vary::By(names) if names.iter().any(|name| name == "cookie"))
    }
}

/// Appends what tells this request apart from others: the values of the fields `names`, normalised so that requests that
/// mean the same have the same.
pub fn append_secondary_key(names: &[String], fields: &[Header<'_>], key: &mut Vec<u8>) {
    for name in names {
        let values = || fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).map(|f| f.value);
        // No name or value holds a NUL, no name a `=`; and a field that is there but empty is not one that is missing.
        key.push(0);
        key.extend_from_slice(name.as_bytes());
        if values().next().is_none() {
            continue;
        }
        key.push(b'=');
        if is_preference_list(name) {
            append_preferences(values(), key);
        } else {
            append_joined(values(), key);
        }
    }
}

/// Lists whose order says nothing: preferences have weights (RFC 9110 section 12.4).
fn is_preference_list(name: &str) -> bool {
    matches!(name, "accept" | "accept-encoding" | "accept-language" | "accept-charset")
}

/// Members in lower case without white space, sorted. Those of one weight are one choice as good as another, so that
/// `gzip, br` and `br,gzip;q=1` are the same.
fn append_preferences<'a>(values: impl Iterator<Item = &'a [u8]>, key: &mut Vec<u8>) {
    let mut choices: Vec<Vec<u8>> = values
        .flat_map(members)
        .map(|member| {
            let compact = member.iter().filter(|byte| !matches!(byte, b' ' | b'\t'));
            let mut compact: Vec<u8> = compact.map(u8::to_ascii_lowercase).collect();
            for one in [&b";q=1.000"[..], b";q=1.00", b";q=1.0", b";q=1"] {
                if compact.ends_with(one) {
                    compact.truncate(compact.len() - one.len());
                    break;
                }
            }
            compact
        })
        .filter(|member| !member.is_empty())
        .collect();
    choices.sort_unstable();
    choices.dedup();
    key.extend_from_slice(&choices.join(&b','));
}

/// Several lines as one list, without white space around members' commas.
fn append_joined<'a>(values: impl Iterator<Item = &'a [u8]>, key: &mut Vec<u8>) {
    for (index, value) in values.enumerate() {
        if index > 0 {
            key.push(b',');
        }
        key.extend_from_slice(value.trim_ascii());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vary(lines: &[&str]) -> Vary {
        let mut fields = FieldLines::new();
        lines.iter().for_each(|value| fields.push("Vary", value));
        Vary::of(&fields)
    }

    fn key(names: &[&str], fields: &[(&str, &str)]) -> Vec<u8> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let fields: Vec<_> =
            fields.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect();
        let mut key = Vec::new();
        append_secondary_key(&names, &fields, &mut key);
        key
    }

    #[test]
    fn names_are_read_without_case_and_a_star_is_for_nobody() {
        let by = |names: &[&str]| Vary::By(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(vary(&[]), by(&[]));
        assert_eq!(vary(&["", " , "]), by(&[]));
        assert_eq!(vary(&["Cookie, accept-language", "COOKIE"]), by(&["accept-language", "cookie"]));
        assert_eq!(vary(&["Cookie", "*"]), Vary::Any);
        assert_eq!(vary(&["Accept Language"]), Vary::Any);
        let many: Vec<String> = (0..17).map(|n| format!("x-{n}")).collect();
        assert_eq!(vary(&[&many.join(",")]), Vary::Any);
        assert!(vary(&["Cookie"]).tells_cookies_apart());
        assert!(!vary(&["*"]).tells_cookies_apart());
    }

    #[test]
    fn requests_that_mean_the_same_have_the_same_key() {
        let encoding = |value| key(&["accept-encoding"], &[("Accept-Encoding", value)]);
        assert_eq!(encoding("gzip, br"), encoding("BR,gzip;q=1.0"));
        assert_ne!(encoding("gzip, br;q=0"), encoding("gzip, br"));
        assert_ne!(encoding("gzip"), encoding("br"));
        let two = [("Accept-Encoding", "br"), ("accept-encoding", "gzip")];
        assert_eq!(key(&["accept-encoding"], &two), encoding("gzip, br"));
        assert_ne!(encoding(""), key(&["accept-encoding"], &[]));
        let cookie = |value| key(&["cookie"], &[("Cookie", value)]);
        assert_ne!(cookie("a=1; b=2"), cookie("b=2; a=1"));
        assert_ne!(cookie("a=1"), cookie("A=1"));
    }

    proptest! {
        /// A value of one field never passes for that of another.
        #[test]
        fn different_fields_have_different_keys(
            first in prop::collection::vec(prop::option::of("[a-z=]{0,4}"), 2),
            second in prop::collection::vec(prop::option::of("[a-z=]{0,4}"), 2),
        ) {
            let of = |values: &[Option<String>]| {
                let fields: Vec<(&str, &str)> = ["x-a", "x-b"]
                    .into_iter()
                    .zip(values)
                    .filter_map(|(name, value)| Some((name, value.as_deref()?)))
                    .collect();
                key(&["x-a", "x-b"], &fields)
            };
            prop_assert_eq!(of(&first) == of(&second), first == second);
        }
    }
}
