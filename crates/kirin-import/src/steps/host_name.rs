//! Names of hosts that Kirin can have.

use crate::text::VARIABLE;

/// The longest name, in bytes.
const LONGEST_NAME: usize = 128;

/// Returns whether a text can be a host of a site: a name, `*.name`, `name.*` or an address.
pub(crate) fn is_host(text: &str) -> bool {
    if text.contains(VARIABLE) {
        return true;
    }
    if let Some(address) = text.strip_prefix('[') {
        return address
            .strip_suffix(']')
            .is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    }
    let name = text.strip_prefix("*.").or(text.strip_suffix(".*")).unwrap_or(text);
    let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(is_part);
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_wildcards_and_addresses() {
        for (text, expected) in [
            ("example.org", true),
            ("*.example.org", true),
            ("example.*", true),
            ("münchen.de", true),
            ("[::1]", true),
            ("127.0.0.1", true),
            ("", false),
            ("a..b", false),
            ("*", false),
            ("*.a.*", false),
            ("a*b", false),
            ("[x]", false),
            ("a b", false),
        ] {
            assert_eq!(is_host(text), expected, "{text}");
        }
    }
}
