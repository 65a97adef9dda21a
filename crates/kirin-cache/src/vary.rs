//! `Vary`: the request fields that select one of the responses to a target (RFC 9111 section 4.1).

use httparse::Header;
use kirin_http::FieldLines;
use kirin_http::field_list::members;

/// The most field names by which one response may vary.
const MAX_NAMES: usize = 16;

/// The request fields by which the responses to a target vary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// The names of the fields: in lower case, sorted, each once. With an empty list, one response
    /// answers all requests.
    By(Vec<String>),
    /// The response never answers another request. It varies by something outside of the request
    /// (`*`), by the client's address, or by more fields than the limit.
    Any,
}

impl Vary {
    /// Reads the field of a response. A response with a content coding always varies by
    /// `Accept-Encoding`, because not every client can decode it.
    pub fn from_fields(fields: &FieldLines) -> Self {
        let mut names = Vec::new();
        for (_, value) in fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"vary")) {
            for name in members(value) {
                let is_name = name.iter().all(u8::is_ascii_graphic);
                if name == b"*" || !is_name {
                    return Vary::Any;
                }
                let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                // The origin server sees the fields that Kirin writes. So the received fields
                // cannot select the response.
                if matches!(name.as_str(), "forwarded" | "x-forwarded-for") {
                    return Vary::Any;
                }
                names.push(name);
            }
        }
        if fields
            .get("content-encoding")
            .is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity"))
        {
            names.push("accept-encoding".to_owned());
        }
        names.sort_unstable();
        names.dedup();
        if names.len() > MAX_NAMES { Vary::Any } else { Vary::By(names) }
    }

    /// Returns whether requests with different `Cookie` fields get different responses.
    pub fn tells_cookies_apart(&self) -> bool {
        matches!(self, Vary::By(names) if names.iter().any(|name| name == "cookie"))
    }
}

/// Appends the values of the fields `names`, by which this request differs from others. They are
/// normalized so that equivalent requests have equal keys.
pub fn append_secondary_key(names: &[String], fields: &[Header<'_>], key: &mut Vec<u8>) {
    for name in names {
        let values =
            || fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).map(|f| f.value);
        // No name or value contains a NUL, and no name contains `=`. An empty field differs from a
        // missing one.
        key.push(0);
        key.extend_from_slice(name.as_bytes());
        if values().next().is_none() {
            continue;
        }
        key.push(b'=');
        match name.as_str() {
            "accept-encoding" => append_codings(values(), key),
            "accept" | "accept-language" | "accept-charset" => append_members(values(), key),
            _ => append_joined(values(), key),
        }
    }
}

/// Appends the members in their order and spelling. Neither should matter (RFC 9110 section 12.4).
/// But frameworks take the first of two members with the same weight. So a client that sends the
/// same list in another order could choose the response for others.
fn append_members<'a>(values: impl Iterator<Item = &'a [u8]>, key: &mut Vec<u8>) {
    for (index, member) in values.flat_map(members).enumerate() {
        if index > 0 {
            key.push(b',');
        }
        key.extend(member.iter().filter(|byte| !matches!(byte, b' ' | b'\t')));
    }
}

/// Appends the codings in lower case and sorted. `gzip, br` and `br,gzip;q=1` are the same: both
/// clients can decode whichever coding the origin server chooses.
fn append_codings<'a>(values: impl Iterator<Item = &'a [u8]>, key: &mut Vec<u8>) {
    let mut codings: Vec<Vec<u8>> = values
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
        .collect();
    codings.sort_unstable();
    codings.dedup();
    key.extend_from_slice(&codings.join(&b','));
}

/// Appends several lines as one list, without white space around the lines.
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
        Vary::from_fields(&fields)
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
    fn names_of_vary_ignore_case_and_a_star_matches_no_request() {
        let by = |names: &[&str]| Vary::By(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(vary(&[]), by(&[]));
        assert_eq!(vary(&["", " , "]), by(&[]));
        assert_eq!(
            vary(&["Cookie, accept-language", "COOKIE"]),
            by(&["accept-language", "cookie"])
        );
        assert_eq!(vary(&["Cookie", "*"]), Vary::Any);
        assert_eq!(vary(&["Accept Language"]), Vary::Any);
        let many: Vec<String> = (0..17).map(|n| format!("x-{n}")).collect();
        assert_eq!(vary(&[&many.join(",")]), Vary::Any);
        assert!(vary(&["Cookie"]).tells_cookies_apart());
        assert!(!vary(&["*"]).tells_cookies_apart());
    }

    #[test]
    fn a_coded_response_is_for_clients_that_accept_the_coding() {
        for (coding, expected) in [("gzip", &["accept-encoding"][..]), ("Identity", &[])] {
            let mut fields = FieldLines::new();
            fields.push("Content-Encoding", coding);
            assert_eq!(
                Vary::from_fields(&fields),
                Vary::By(expected.iter().map(|name| (*name).to_owned()).collect())
            );
        }
    }

    #[test]
    fn a_response_that_varies_by_the_clients_address_is_for_this_client_alone() {
        for name in ["Forwarded", "x-forwarded-for"] {
            assert_eq!(vary(&["Accept", name]), Vary::Any, "{name}");
        }
        // These are in the key, as are the scheme and the host.
        assert_ne!(vary(&["X-Forwarded-Proto, X-Forwarded-Host"]), Vary::Any);
    }

    #[test]
    fn the_order_of_a_clients_preferences_is_kept() {
        for name in ["accept", "accept-language"] {
            let of = |value| key(&[name], &[(name, value)]);
            assert_ne!(of("a, b"), of("b, a"));
            assert_ne!(of("A"), of("a"));
            assert_eq!(of("a;q=1 , b"), of("a; q=1,b"));
            assert_eq!(key(&[name], &[(name, "a"), (name, "b")]), of("a,b"));
        }
    }

    #[test]
    fn equivalent_requests_have_the_same_key() {
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
        /// Checks that the value of one field is never taken for that of another.
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
