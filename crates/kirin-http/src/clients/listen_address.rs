//! Addresses at which a listener listens: a TCP address or the path of a unix socket.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// `HOST:PORT`. With port 0, the kernel chooses a free port.
    Tcp(SocketAddr),
    /// `unix:PATH`
    Unix(PathBuf),
}

/// A text that is not the address of a listener.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an address: use PORT (on 127.0.0.1), IP:PORT, *:PORT or :PORT (all addresses), \
     or unix:PATH"
)]
pub struct InvalidListenAddress(pub String);

impl std::str::FromStr for ListenAddress {
    type Err = InvalidListenAddress;

    fn from_str(text: &str) -> Result<Self, InvalidListenAddress> {
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err(InvalidListenAddress(text.into()));
            }
            return Ok(ListenAddress::Unix(path.into()));
        }
        let invalid = || InvalidListenAddress(text.into());
        let host_and_port = text.rsplit_once(':').unwrap_or(("localhost", text));
        let host: IpAddr = match host_and_port.0 {
            "localhost" => Ipv4Addr::LOCALHOST.into(),
            "" | "*" => Ipv4Addr::UNSPECIFIED.into(),
            _ => return text.parse().map(ListenAddress::Tcp).map_err(|_| invalid()),
        };
        let port = host_and_port.1.parse::<u16>().map_err(|_| invalid())?;
        Ok(ListenAddress::Tcp(SocketAddr::from((host, port))))
    }
}

impl std::fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(f, "{address}"),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_local_and_without_a_host_it_is_of_all_addresses() {
        for (text, address) in [
            ("80", Some("127.0.0.1:80")),
            ("localhost:80", Some("127.0.0.1:80")),
            (":80", Some("0.0.0.0:80")),
            ("*:80", Some("0.0.0.0:80")),
            ("10.0.0.1:80", Some("10.0.0.1:80")),
            ("[::]:80", Some("[::]:80")),
            ("unix:web.sock", Some("unix:web.sock")),
            ("", None),
            (":", None),
            ("::1", None),
            ("*", None),
            ("65536", None),
            (":65536", None),
            ("localhost", None),
            ("example.org:80", None),
            ("unix:", None),
        ] {
            let parsed = text.parse::<ListenAddress>();
            assert_eq!(parsed.as_ref().ok().map(ToString::to_string).as_deref(), address, "{text}");
            if let Err(error) = parsed {
                assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
            }
        }
    }
}
