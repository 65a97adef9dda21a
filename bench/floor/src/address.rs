//! Addresses of servers in the notation of Kirin's configuration: `HOST:PORT` or `unix:/path`.

use std::io;
use std::net::ToSocketAddrs;
use std::str::FromStr;

use socket2::{Domain, SockAddr, Socket, Type};

/// The address of a server on either kind of socket.
#[derive(Clone)]
pub struct Address {
    domain: Domain,
    peer: SockAddr,
}

impl Address {
    /// Connects and waits until the connection is there. Small writes are sent at once.
    pub fn connect(&self) -> io::Result<Socket> {
        let socket = Socket::new(self.domain, Type::STREAM, None)?;
        socket.connect(&self.peer)?;
        if self.domain != Domain::UNIX {
            socket.set_tcp_nodelay(true)?;
        }
        Ok(socket)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let peer = match text.strip_prefix("unix:") {
            Some(path) => SockAddr::unix(path).map_err(|error| error.to_string())?,
            None => text
                .to_socket_addrs()
                .map_err(|error| error.to_string())?
                .next()
                .ok_or_else(|| format!("{text} has no address"))?
                .into(),
        };
        Ok(Self { domain: peer.domain(), peer })
    }
}

#[cfg(test)]
mod tests {
    use super::Address;
    use socket2::Domain;

    #[test]
    fn an_address_is_a_host_and_port_or_a_unix_path() {
        let domain = |text: &str| text.parse::<Address>().map(|address| address.domain);
        assert_eq!(domain("127.0.0.1:11211"), Ok(Domain::IPV4));
        assert_eq!(domain("[::1]:11211"), Ok(Domain::IPV6));
        assert_eq!(domain("unix:/run/store.sock"), Ok(Domain::UNIX));
        assert!(domain("/run/store.sock").is_err());
    }
}
