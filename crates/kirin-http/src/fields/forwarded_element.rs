//! The syntax of `Forwarded` (RFC 7239 section 4): elements separated by commas, of `name=value`
//! pairs separated by semicolons.
//!
//! The parser is strict and accepts only complete lines. If a client leaves a quotation mark open,
//! a lenient parser would take what the next proxy adds for a part of the string.

use std::borrow::Cow;

use crate::field_lines::is_field_value_byte;
use crate::token::is_token_byte;

/// What one proxy says about a request. Other parameters (`by`, extensions) are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    /// `for`: the client of the proxy.
    pub(crate) for_node: Option<Cow<'a, [u8]>>,
    /// `proto`: the scheme of the request.
    pub(crate) proto: Option<Cow<'a, [u8]>>,
    /// `host`: the host of the request. A value with quoted pairs is not a host.
    pub(crate) host: Option<&'a [u8]>,
}

/// Returns the elements of one field line in order, or `None` if it is malformed.
pub(crate) fn parse(line: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut elements = Vec::new();
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let (element, after) = parse_element(rest)?;
        elements.push(element);
        rest = after;
    }
    Some(elements)
}

/// Parses one element. Returns it and the text behind its comma.
fn parse_element(mut rest: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let mut element = Element::default();
    let mut seen = [false; 3];
    loop {
        rest = rest.trim_ascii_start();
        // Both lists may have empty members (RFC 9110 section 5.6.1).
        match rest.first() {
            None => return Some((element, rest)),
            Some(b',') => return Some((element, rest.get(1..)?.trim_ascii_start())),
            Some(b';') => {
                rest = rest.get(1..)?;
                continue;
            }
            Some(_) => {}
        }
        let equals = rest.iter().position(|byte| !is_token_byte(*byte)).filter(|at| *at > 0)?;
        let (name, after) = rest.split_at(equals);
        let (value, after) = parse_value(after.strip_prefix(b"=")?)?;
        rest = after.trim_ascii_start();
        if !matches!(rest.first(), None | Some(b',' | b';')) {
            return None;
        }
        let known = ["for", "proto", "host"]
            .iter()
            .position(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        // "Each parameter MUST NOT occur more than once per field-value" of a proxy.
        let Some(known) = known else { continue };
        if std::mem::replace(&mut seen[known], true) {
            return None;
        }
        match (known, value) {
            (0, value) => element.for_node = Some(value),
            (1, value) => element.proto = Some(value),
            (_, Cow::Borrowed(value)) => element.host = Some(value),
            (_, Cow::Owned(_)) => {}
        }
    }
}

/// Parses `token / quoted-string`. Returns it and the text behind it.
fn parse_value(rest: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let Some(quoted) = rest.strip_prefix(b"\"") else {
        // Proxies write `for=192.0.2.1:4711` and `host=example.org:8080` without the quotation
        // marks that `:` requires.
        let is_value = |byte: u8| is_token_byte(byte) || matches!(byte, b':' | b'[' | b']');
        let end = rest.iter().position(|byte| !is_value(*byte)).unwrap_or(rest.len());
        return (end > 0).then(|| (Cow::Borrowed(&rest[..end]), &rest[end..]));
    };
    let end = quoted.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    if quoted[end] == b'"' {
        return Some((Cow::Borrowed(&quoted[..end]), &quoted[end + 1..]));
    }
    let mut value = Vec::new();
    let mut bytes = quoted.iter().enumerate();
    loop {
        match bytes.next()? {
            (end, b'"') => return Some((Cow::Owned(value), &quoted[end + 1..])),
            (_, b'\\') => value.push(
                *bytes.next().map(|(_, byte)| byte).filter(|byte| is_field_value_byte(**byte))?,
            ),
            (_, byte) => value.push(*byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the elements as `for|proto|host`.
    fn shown(line: &str) -> Option<Vec<String>> {
        let text = |bytes: Option<&[u8]>| {
            bytes.map_or("-".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        parse(line.as_bytes()).map(|elements| {
            elements
                .iter()
                .map(|e| {
                    format!(
                        "{}|{}|{}",
                        text(e.for_node.as_deref()),
                        text(e.proto.as_deref()),
                        text(e.host)
                    )
                })
                .collect()
        })
    }

    #[test]
    fn elements_are_read_as_rfc_7239_writes_them() {
        for (line, expected) in [
            ("", &[][..]),
            ("for=\"_gazonk\"", &["_gazonk|-|-"][..]),
            ("For=\"[2001:db8:cafe::17]:4711\"", &["[2001:db8:cafe::17]:4711|-|-"]),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", &["192.0.2.60|http|-"]),
            ("for=192.0.2.43, for=198.51.100.17", &["192.0.2.43|-|-", "198.51.100.17|-|-"]),
            ("for=192.0.2.43,for=\"a,b;c\";host=h", &["192.0.2.43|-|-", "a,b;c|-|h"]),
            ("for=192.0.2.1:80;host=example.org:8080", &["192.0.2.1:80|-|example.org:8080"]),
            ("for=\"a\\\"b\" ; proto=https", &["a\"b|https|-"]),
            (";for=a;;proto=b;", &["a|b|-"]),
            ("secret=x;for=a", &["a|-|-"]),
        ] {
            assert_eq!(
                shown(line).as_deref(),
                Some(&expected.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>()[..]),
                "{line}"
            );
        }
    }

    #[test]
    fn a_line_that_is_malformed_anywhere_is_not_used() {
        for line in [
            "for=\"x, for=192.0.2.1",
            "for=\"x\\\", for=192.0.2.1",
            "for=a b",
            "for =a",
            "for= a",
            "=a",
            "for",
            "for=a;for=b",
            "for=a, proto",
            "for=\"a\"b",
            "for=a, for=\"b\\",
        ] {
            assert_eq!(shown(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn quoted_values_come_out_as_they_went_in(value in "[ -~]{0,20}", after in "[a-z0-9.]{1,9}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("for=\"{quoted}\", for={after}");
            prop_assert_eq!(shown(&line), Some(vec![format!("{value}|-|-"), format!("{after}|-|-")]));
        }

        #[test]
        fn any_line_is_read_without_a_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&line);
        }
    }
}
