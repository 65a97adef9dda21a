//! Addresses at which a listener listens: a TCP address or the path of a unix socket.

use std::net::SocketAddr;
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
#[error("`{0}` is not an address: use HOST:PORT, PORT or unix:PATH")]
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
        if let Ok(port) = text.parse::<u16>() {
            return Ok(ListenAddress::Tcp(SocketAddr::from(([127, 0, 0, 1], port))));
        }
        let text = text
            .strip_prefix("localhost:")
            .map_or(text.to_owned(), |port| format!("127.0.0.1:{port}"));
        let text = text.strip_prefix("*:").map_or(text.clone(), |port| format!("0.0.0.0:{port}"));
        text.parse().map(ListenAddress::Tcp).map_err(|_| InvalidListenAddress(text))
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
