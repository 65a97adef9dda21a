//! Values for ACME, as the file and the command line write them.

/// Returns the name of a certificate in lower case. The error says what a name is.
pub fn acme_domain(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    match is_dns_name(&name) {
        true => Ok(name),
        false => Err(format!(
            "`{text}` is not a name that ACME can prove here: allowed are names in the DNS such as \
             www.example.org, without wildcards, ports and addresses"
        )),
    }
}

/// Returns the address to which an authority writes, if it may be one.
pub fn acme_email(text: &str) -> Result<String, String> {
    match text.split_once('@') {
        Some((user, host)) if !user.is_empty() && is_dns_name(host) => Ok(text.to_owned()),
        _ => Err(format!("`{text}` is not an address of e-mail, such as me@example.org")),
    }
}

/// Returns the address of the directory of an authority, if it may be one.
pub fn acme_directory(text: &str) -> Result<String, String> {
    match text.strip_prefix("https://").is_none_or(str::is_empty) {
        true => Err(format!("`{text}`: the authority's directory is an https:// address")),
        false => Ok(text.to_owned()),
    }
}

/// Returns whether `name` is a host name as RFC 1123 section 2.1 defines it. It must have at least
/// two labels, and the last one must not be a number.
fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let last_is_word =
        name.rsplit('.').next().is_some_and(|last| !last.bytes().all(|b| b.is_ascii_digit()));
    name.len() <= 253 && name.contains('.') && last_is_word && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::is_dns_name;

    #[test]
    fn only_dns_names_get_certificates() {
        for name in ["example.org", "a.b.c-d.test", "xn--mnchen-3ya.de", "1.example"] {
            assert!(is_dns_name(name), "{name}");
        }
        let long = format!("{}.org", "a".repeat(64));
        for name in [
            "",
            "localhost",
            "*.example.org",
            "a..b",
            ".a.b",
            "a.b.",
            "127.0.0.1",
            "::1",
            "a.b:80",
            "a/../b.c",
            "ü.de",
            &long,
        ] {
            assert!(!is_dns_name(name), "{name}");
        }
    }
}
