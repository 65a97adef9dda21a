//! Addresses of servers as they are written in a configuration.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerScheme {
    /// HTTP/1.1.
    Http,
    /// TLS with HTTP/2 if the server offers it, or else HTTP/1.1.
    Https,
    /// HTTP/2 without TLS, by prior knowledge (RFC 9113 section 3.3).
    H2c,
    /// FastCGI, for example php-fpm.
    FastCgi,
    /// SCGI.
    Scgi,
    /// The protocol of uWSGI.
    Uwsgi,
}

/// The place of a server in the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A host name that must be looked up, and a port.
    Name(String, u16),
    /// An IP address and a port.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

/// The address of a server: `127.0.0.1:3000`, `app.internal:3000`, `unix:/run/app.sock`,
/// `http://HOST`, `https://HOST:8443`, `h2c://HOST:50051`, `fastcgi://unix:/run/php.sock`,
/// `scgi://HOST:4000`, `uwsgi://HOST:3031`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// The protocol.
    pub scheme: ServerScheme,
    /// The place in the network.
    pub location: Location,
}

/// A text that is not the address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a server: {reason}; write HOST:PORT, unix:/PATH, http://HOST, https://HOST, h2c://HOST:PORT, fastcgi://HOST:PORT, \
     fastcgi://unix:/PATH, or the same with scgi or uwsgi"
)]
pub struct AddressError {
    text: String,
    reason: &'static str,
}

impl ServerAddress {
    /// Returns the host as certificates and `Host` have it, without a port. A unix socket has
    /// `localhost`.
    pub fn host(&self) -> String {
        match &self.location {
            Location::Name(name, _) => name.clone(),
            Location::Tcp(address) => match address.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            },
            Location::Unix(_) => "localhost".into(),
        }
    }

    /// Returns the server's own `Host`: the host, and the port unless it is the default.
    pub fn authority(&self) -> String {
        let port = match &self.location {
            Location::Name(_, port) => *port,
            Location::Tcp(address) => address.port(),
            Location::Unix(_) => return self.host(),
        };
        if Some(port) == self.scheme.default_port() {
            self.host()
        } else {
            format!("{}:{port}", self.host())
        }
    }
}

impl ServerScheme {
    /// The schemes by their names before `://`.
    const NAMED: [(&str, Self); 6] = [
        ("http", ServerScheme::Http),
        ("https", ServerScheme::Https),
        ("h2c", ServerScheme::H2c),
        ("fastcgi", ServerScheme::FastCgi),
        ("scgi", ServerScheme::Scgi),
        ("uwsgi", ServerScheme::Uwsgi),
    ];

    /// Returns whether requests are CGI meta-variables instead of HTTP.
    pub fn is_cgi(self) -> bool {
        matches!(self, ServerScheme::FastCgi | ServerScheme::Scgi | ServerScheme::Uwsgi)
    }

    fn default_port(self) -> Option<u16> {
        match self {
            ServerScheme::Http | ServerScheme::H2c => Some(80),
            ServerScheme::Https => Some(443),
            // Each installation chooses its own port.
            ServerScheme::FastCgi | ServerScheme::Scgi | ServerScheme::Uwsgi => None,
        }
    }
}

impl FromStr for ServerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = |reason| AddressError { text: text.into(), reason };
        let (scheme, rest) = match text.split_once("://") {
            None => (None, text),
            Some((name, rest)) => {
                match ServerScheme::NAMED.iter().find(|(other, _)| *other == name) {
                    Some((_, scheme)) => (Some(*scheme), rest),
                    None => {
                        return Err(error(
                            "the scheme is not http, https, h2c, fastcgi, scgi or uwsgi",
                        ));
                    }
                }
            }
        };
        if let Some(path) = rest.strip_prefix("unix:") {
            if path.is_empty() || scheme == Some(ServerScheme::Https) {
                return Err(error("unix: needs a path, and no https"));
            }
            let location = Location::Unix(path.into());
            return Ok(Self { scheme: scheme.unwrap_or(ServerScheme::Http), location });
        }
        let rest = if scheme.is_some() { rest.strip_suffix('/').unwrap_or(rest) } else { rest };
        if rest.contains(['/', '?', '#', '@']) {
            return Err(error(
                "there is more than a host and a port (a path is set with the route's `rewrite`)",
            ));
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port
                    .parse()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or(error("the port is not 1 to 65535"))?;
                (host, Some(port))
            }
            _ => (rest, None),
        };
        let port = match (port, scheme) {
            (Some(port), _) => port,
            (None, Some(scheme)) => scheme.default_port().ok_or(error("there is no port"))?,
            (None, None) => return Err(error("there is no port")),
        };
        let scheme = scheme.unwrap_or(ServerScheme::Http);
        if let Some(ip) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            let ip: Ipv6Addr =
                ip.parse().map_err(|_| error("what is in [] is not an IPv6 address"))?;
            return Ok(Self { scheme, location: Location::Tcp(SocketAddr::new(ip.into(), port)) });
        }
        if let Ok(ip) = host.parse::<IpAddr>() {
            return match ip {
                IpAddr::V4(_) => {
                    Ok(Self { scheme, location: Location::Tcp(SocketAddr::new(ip, port)) })
                }
                IpAddr::V6(_) => Err(error("an IPv6 address stands in []")),
            };
        }
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if host.is_empty() || host.len() > 253 || !host.bytes().all(is_name) {
            return Err(error("the host is not a name"));
        }
        Ok(Self { scheme, location: Location::Name(host.to_ascii_lowercase(), port) })
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = ServerScheme::NAMED
            .iter()
            .find(|(_, scheme)| *scheme == self.scheme && *scheme != ServerScheme::Http)
        {
            write!(f, "{name}://")?;
        }
        match &self.location {
            Location::Name(name, port) => write!(f, "{name}:{port}"),
            Location::Tcp(address) => write!(f, "{address}"),
            Location::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host() {
        for (text, shown, authority) in [
            ("127.0.0.1:3000", "127.0.0.1:3000", "127.0.0.1:3000"),
            ("App.internal:80", "app.internal:80", "app.internal"),
            ("unix:/run/x.sock", "unix:/run/x.sock", "localhost"),
            ("http://a.test", "a.test:80", "a.test"),
            ("http://a.test:3000/", "a.test:3000", "a.test:3000"),
            ("https://a.test", "https://a.test:443", "a.test"),
            ("https://[::1]:8443", "https://[::1]:8443", "[::1]:8443"),
            ("h2c://a_b:50051", "h2c://a_b:50051", "a_b:50051"),
            ("h2c://unix:/x", "h2c://unix:/x", "localhost"),
            ("fastcgi://unix:/x", "fastcgi://unix:/x", "localhost"),
            ("fastcgi://[::1]:9000", "fastcgi://[::1]:9000", "[::1]:9000"),
            ("scgi://a.test:4000", "scgi://a.test:4000", "a.test:4000"),
            ("uwsgi://a.test:3031", "uwsgi://a.test:3031", "a.test:3031"),
        ] {
            let address: ServerAddress = text.parse().expect(text);
            assert_eq!(
                (address.to_string(), address.authority()),
                (shown.into(), authority.into()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_malformed_server_address_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "no port"),
            ("a.test", "no port"),
            ("a.test:0", "port"),
            ("a.test:99999", "port"),
            ("ftp://a", "scheme"),
            ("http://a/b", "rewrite"),
            ("http://user@a/", "more than"),
            ("unix:", "path"),
            ("https://unix:/x", "no https"),
            ("::1:80", "[]"),
            ("[::1:80", "name"),
            ("[x]:80", "IPv6"),
            ("a b:80", "name"),
            ("http://", "name"),
            ("fastcgi://a", "no port"),
        ] {
            let error = text.parse::<ServerAddress>().expect_err(text).to_string();
            assert!(error.contains(reason) && error.contains("unix:/PATH"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_and_a_written_address_is_read_back(text in "(https?://|h2c://|fastcgi://|unix:)?[a-z0-9:./@\\[\\]-]{0,20}") {
            if let Ok(address) = text.parse::<ServerAddress>() {
                prop_assert_eq!(address.to_string().parse(), Ok(address));
            }
        }
    }
}
