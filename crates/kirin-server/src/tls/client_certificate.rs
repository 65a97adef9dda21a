//! Reads the parts of a client certificate that applications get.

use std::fmt::Write;
use std::path::Path;

use kirin_http::ClientCertificate;
use rustls::pki_types::CertificateDer;

/// The types of name parts that have short names (RFC 4514 section 3), and the type for mail, which
/// every tool knows.
const SHORT_NAMES: &[(&[u8], &str)] = &[
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;

/// Reads a certificate that was verified by these authorities.
pub(crate) fn read(
    certificate: &CertificateDer<'_>,
    authorities: &Path,
) -> Option<ClientCertificate> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut serial = String::new();
    for byte in certificate.serial() {
        let _ = write!(serial, "{byte:02X}");
    }
    // A name that webpki can read and we cannot becomes empty rather than wrong.
    let subject = distinguished_name(certificate.subject()).unwrap_or_default();
    Some(ClientCertificate { subject, serial, authorities: authorities.into() })
}

/// Returns the text of a name. Its parts are `SET`s of type and value, and the last part comes
/// first.
fn distinguished_name(mut der: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    while !der.is_empty() {
        let (tag, mut part, rest) = element(der)?;
        der = rest;
        let mut text = String::new();
        while tag == SET && !part.is_empty() {
            let (SEQUENCE, pair, others) = element(part)? else { return None };
            part = others;
            let (OBJECT_IDENTIFIER, kind, value) = element(pair)? else { return None };
            let (tag, value, _) = element(value)?;
            if !text.is_empty() {
                text.push('+');
            }
            write_type(kind, &mut text);
            write_value(tag, value, &mut text);
        }
        parts.push(text);
    }
    parts.reverse();
    Some(parts.join(","))
}

/// Returns the tag and content of the first element of `der`, and the bytes behind it. No name is
/// longer than 64 KB.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (length, rest) = match rest {
        [length @ ..=0x7f, rest @ ..] => (usize::from(*length), rest),
        [0x81, length, rest @ ..] => (usize::from(*length), rest),
        [0x82, high, low, rest @ ..] => (usize::from(*high) << 8 | usize::from(*low), rest),
        _ => return None,
    };
    Some((*tag, rest.get(..length)?, rest.get(length..)?))
}

fn write_type(kind: &[u8], out: &mut String) {
    if let Some((_, name)) = SHORT_NAMES.iter().find(|(other, _)| *other == kind) {
        out.push_str(name);
    } else {
        let mut number = 0u64;
        let mut first = true;
        for byte in kind {
            number = number << 7 | u64::from(byte & 0x7f);
            if byte & 0x80 != 0 {
                continue;
            }
            if first {
                let root = (number / 40).min(2);
                let _ = write!(out, "{root}.{}", number - root * 40);
            } else {
                let _ = write!(out, ".{number}");
            }
            (first, number) = (false, 0);
        }
    }
    out.push('=');
}

/// Escapes the characters that have a meaning in a name (RFC 4514 section 2.4), so that no client
/// can pass for another. Escapes control characters as well.
fn write_value(tag: u8, value: &[u8], out: &mut String) {
    let is_text = matches!(tag, UTF8_STRING | PRINTABLE_STRING | IA5_STRING);
    let Some(text) = std::str::from_utf8(value).ok().filter(|_| is_text) else {
        out.push('#');
        for byte in value {
            let _ = write!(out, "{byte:02X}");
        }
        return;
    };
    let last = text.chars().count().saturating_sub(1);
    for (index, character) in text.chars().enumerate() {
        match character {
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(out, "\\{:02X}", u32::from(character));
                continue;
            }
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => out.push('\\'),
            ' ' if index == 0 || index == last => out.push('\\'),
            '#' if index == 0 => out.push('\\'),
            _ => {}
        }
        out.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};

    fn subject(parts: &[(DnType, &str)]) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, value) in parts {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        read(certificate.der(), Path::new("ca.pem")).unwrap().subject
    }

    #[test]
    fn a_name_is_written_last_part_first() {
        let parts = [
            (DnType::CountryName, "JP"),
            (DnType::OrganizationName, "麒麟"),
            (DnType::CommonName, "alice"),
        ];
        assert_eq!(subject(&parts), "CN=alice,O=麒麟,C=JP");
    }

    #[test]
    fn separators_in_a_value_of_the_subject_are_escaped() {
        assert_eq!(subject(&[(DnType::CommonName, "eve,CN=alice")]), "CN=eve\\,CN\\=alice");
        assert_eq!(subject(&[(DnType::CommonName, " #a\n\0 ")]), "CN=\\ #a\\0A\\00\\ ");
    }

    #[test]
    fn an_unknown_attribute_type_is_written_as_its_number() {
        assert_eq!(
            subject(&[(DnType::CustomDnType(vec![2, 5, 4, 42]), "Alice")]),
            "2.5.4.42=Alice"
        );
        assert_eq!(subject(&[(DnType::CustomDnType(vec![1, 2, 840, 1]), "x")]), "1.2.840.1=x");
    }

    #[test]
    fn a_truncated_name_is_refused() {
        for cut in [&[0x31][..], &[0x31, 5, 0x30], &[0x31, 2, 0x30, 9], &[0x31, 0x84, 1, 1, 1, 1]] {
            assert_eq!(distinguished_name(cut), None, "{cut:?}");
        }
    }
}
