//! The addresses of `listen`.

use std::net::IpAddr;

use super::directive::Directive;

/// An address on which a server listens.
#[derive(Debug, Clone)]
pub struct Listen<'a> {
    /// The address as Kirin writes it: `*:80`, `127.0.0.1:80`, `unix:/run/web.sock`.
    pub address: String,
    /// The port, which a unix socket does not have.
    pub port: Option<u16>,
    /// Whether the server speaks TLS there.
    pub is_tls: bool,
    /// Whether the server is the one for unknown hosts.
    pub is_default: bool,
    /// Whether connections begin with a PROXY header.
    pub has_proxy_header: bool,
    /// The directive. It is missing for the address that a server without `listen` has.
    pub directive: Option<&'a Directive>,
}

/// Which clients can reach an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those of all networks.
    All,
    /// Those of this machine.
    Machine,
    /// Those of this machine, by a unix socket.
    Socket,
    /// Those that reach this address of the machine.
    Address,
}

impl<'a> Listen<'a> {
    /// Returns the address of a server without `listen`.
    pub fn implied() -> Self {
        Self {
            address: "*:80".into(),
            port: Some(80),
            is_tls: false,
            is_default: false,
            has_proxy_header: false,
            directive: None,
        }
    }

    /// Reads a directive. Returns `None` if its address is not understood.
    pub fn read(directive: &'a Directive) -> Option<Self> {
        let (address, port) = address(directive.arg(0))?;
        let has = |word: &str| directive.args.iter().skip(1).any(|arg| arg == word);
        Some(Self {
            address,
            port,
            is_tls: has("ssl"),
            is_default: has("default_server") || has("default"),
            has_proxy_header: has("proxy_protocol"),
            directive: Some(directive),
        })
    }

    /// Returns which clients can reach the address.
    pub fn reach(&self) -> Reach {
        if self.address.starts_with("unix:") {
            return Reach::Socket;
        }
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match ip {
            _ if matches!(host, "*" | "[::]") => Reach::All,
            Ok(ip) if ip.is_loopback() => Reach::Machine,
            _ => Reach::Address,
        }
    }
}

/// Returns the address as Kirin writes it, and its port.
fn address(word: &str) -> Option<(String, Option<u16>)> {
    if let Some(path) = word.strip_prefix("unix:") {
        return (!path.is_empty() && !path.contains('$')).then(|| (word.to_owned(), None));
    }
    if let Ok(port) = word.parse::<u16>() {
        return Some((format!("*:{port}"), Some(port)));
    }
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (word, 80),
    };
    let host = match host {
        "*" | "0.0.0.0" => "*".to_owned(),
        "[::]" => "[::]".to_owned(),
        "localhost" => "127.0.0.1".to_owned(),
        host if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()) => host.to_owned(),
        host => {
            let inner = host.strip_prefix('[')?.strip_suffix(']')?;
            inner.parse::<IpAddr>().ok()?;
            host.to_owned()
        }
    };
    Some((format!("{host}:{port}"), Some(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_kirin() {
        for (word, expected) in [
            ("80", Some("*:80")),
            ("*:8080", Some("*:8080")),
            ("0.0.0.0:80", Some("*:80")),
            ("[::]:443", Some("[::]:443")),
            ("[::1]:443", Some("[::1]:443")),
            ("127.0.0.1", Some("127.0.0.1:80")),
            ("localhost:81", Some("127.0.0.1:81")),
            ("unix:/run/a", Some("unix:/run/a")),
            ("example.org:80", None),
            ("80-90", None),
        ] {
            assert_eq!(address(word).map(|(address, _)| address).as_deref(), expected, "{word}");
        }
    }
}
