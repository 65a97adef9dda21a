//! The addresses of a site.

use crate::steps::is_host;
use crate::text::VARIABLE;

/// The address of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The host. Empty: all.
    pub(crate) host: String,
    pub(crate) https: bool,
    pub(crate) port: u16,
}

/// The ports that are the default of the two schemes, and whether https is automatic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) https: u16,
    pub(crate) automatic: bool,
}

impl Default for Ports {
    fn default() -> Self {
        Self { http: 80, https: 443, automatic: true }
    }
}

impl Address {
    /// Reads an address, or returns why Kirin has none like it.
    pub(crate) fn read(text: &str, ports: Ports) -> Result<Self, String> {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (Some(scheme), rest),
            Some(_) => return Err(format!("`{text}` is neither http nor https")),
            None => (None, text),
        };
        let (rest, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            return Err(format!("`{text}`: an address with a path: write `handle` in its site"));
        }
        let (host, port) = host_and_port(rest);
        let port = match port {
            None => None,
            Some(port) => Some(
                port.parse::<u16>()
                    .map_err(|_| format!("`{text}`: Kirin has one port for an address"))?,
            ),
        };
        let is_name = host.is_empty() || is_host(&host);
        if !is_name {
            return Err(format!("`{text}` is no host of Kirin"));
        }
        let https = match scheme {
            Some(scheme) => scheme == "https",
            None => match port {
                Some(port) if port == ports.https => true,
                Some(port) if port == ports.http => false,
                _ => ports.automatic && !host.is_empty(),
            },
        };
        let port = port.unwrap_or(if https { ports.https } else { ports.http });
        Ok(Self { host, https, port })
    }

    /// Returns whether an authority gives certificates for the host.
    pub(crate) fn is_public(&self) -> bool {
        let inner = ["localhost", ".localhost", ".local", ".internal", ".home.arpa"];
        let is_address = self.host.starts_with('[')
            || self.host.split('.').all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        !self.host.is_empty()
            && !self.host.contains('*')
            && !is_address
            && !inner.iter().any(|end| self.host.ends_with(end))
    }
}

/// Splits off a port. A variable may have a colon.
fn host_and_port(text: &str) -> (String, Option<&str>) {
    let behind = text.rfind([']', '}']).map_or(0, |end| end + 1);
    let colon = text.get(behind..).and_then(|rest| rest.rfind(':'));
    match colon.map(|colon| text.split_at(behind + colon)) {
        Some((host, port)) => (lower(host), port.get(1..)),
        None => (lower(text), None),
    }
}

/// Returns a host in lower case. The name of a variable stays.
fn lower(host: &str) -> String {
    if host.contains(VARIABLE) { host.to_owned() } else { host.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_host_scheme_and_port() {
        for (text, host, https, port) in [
            ("example.com", "example.com", true, 443),
            (":80", "", false, 80),
            (":443", "", true, 443),
            (":8080", "", false, 8080),
            ("http://Example.com", "example.com", false, 80),
            ("example.com:8443", "example.com", true, 8443),
            ("https://[::1]:444", "[::1]", true, 444),
            ("*.example.com", "*.example.com", true, 443),
            ("\u{F8FF}{HOST:-a}:80", "\u{F8FF}{HOST:-a}", false, 80),
        ] {
            let expected = Address { host: host.to_owned(), https, port };
            assert_eq!(Address::read(text, Ports::default()), Ok(expected), "{text}");
        }
        for text in ["ftp://a", "a/b", "a:80-90", "a b"] {
            assert!(Address::read(text, Ports::default()).is_err(), "{text}");
        }
    }
}
