//! Listening sockets that the process inherited: finds out where they listen, and distributes them
//! over the event loops.

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kirin_http::listen_address::ListenAddress;
use kirin_sockets::keepalive;
use rustix::net::{SocketAddrAny, SocketAddrUnix};

use crate::listening::listener::{ListenError, Listener};

/// A listening socket that another process has opened. It does not block.
pub struct InheritedSocket {
    address: ListenAddress,
    /// Whether a socket on all IPv6 addresses accepts IPv4 connections too (ipv6(7), IPV6_V6ONLY).
    takes_ipv4: bool,
    socket: OwnedFd,
}

impl InheritedSocket {
    /// Finds out where `socket` listens.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        let address: SocketAddrAny = rustix::net::getsockname(&socket)?;
        if let Ok(address) = SocketAddr::try_from(address.clone()) {
            let takes_ipv4 = address.is_ipv4() || !rustix::net::sockopt::ipv6_v6only(&socket)?;
            return Ok(Self { address: ListenAddress::Tcp(address), takes_ipv4, socket });
        }
        let unix = SocketAddrUnix::try_from(address)?;
        // An abstract name has no file, and a configuration cannot name it.
        let path = unix
            .path_bytes()
            .ok_or_else(|| io::Error::other("it is a unix socket without a path"))?;
        let path = Path::new(OsStr::from_bytes(path)).to_owned();
        Ok(Self { address: ListenAddress::Unix(path), takes_ipv4: false, socket })
    }

    /// Returns the address at which it listens.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Returns whether it accepts the connections that are made to `wanted`. The process that
    /// opened it may have written the same address in another way: `[::]` for both families, or
    /// another path to the same file.
    pub fn serves(&self, wanted: &ListenAddress) -> bool {
        match (&self.address, wanted) {
            (ListenAddress::Tcp(this), ListenAddress::Tcp(wanted)) => {
                let all = this.ip().is_unspecified() && wanted.ip().is_unspecified();
                this == wanted
                    || all && this.port() == wanted.port() && wanted.is_ipv4() && self.takes_ipv4
            }
            (ListenAddress::Unix(this), ListenAddress::Unix(wanted)) => {
                is_same(std::path::absolute(this), std::path::absolute(wanted))
                    || is_same(this.canonicalize(), wanted.canonicalize())
            }
            _ => false,
        }
    }

    /// Returns the socket.
    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }
}

fn is_same(one: io::Result<PathBuf>, other: io::Result<PathBuf>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

impl Listener {
    /// Distributes `sockets`, which all have one address, over `loops` event loops. The outer list
    /// is by loop. Every socket belongs to some loop, because connections wait in each of them
    /// (SO_REUSEPORT). If there are fewer sockets than loops, loops share them.
    ///
    /// The sockets must not block. The file of a unix socket and the length of the accept queue
    /// stay as the other process has set them.
    pub fn adopt(
        address: &ListenAddress,
        sockets: &[OwnedFd],
        loops: usize,
    ) -> Result<Vec<Vec<Listener>>, ListenError> {
        let failed = |error: io::Error| ListenError::Io(address.clone(), error);
        let mut by_loop: Vec<Vec<Listener>> = (0..loops).map(|_| Vec::new()).collect();
        if sockets.is_empty() || loops == 0 {
            return Ok(by_loop);
        }
        for number in 0..sockets.len().max(loops) {
            let socket = sockets[number % sockets.len()].try_clone().map_err(failed)?;
            by_loop[number % loops].push(match address {
                ListenAddress::Tcp(_) => {
                    // Accepted sockets inherit both (tcp(7)), as they do from sockets that Kirin
                    // binds.
                    rustix::net::sockopt::set_tcp_nodelay(&socket, true)
                        .map_err(|error| failed(error.into()))?;
                    keepalive::set(&socket).map_err(failed)?;
                    Listener::Tcp(socket.into())
                }
                ListenAddress::Unix(path) => Listener::Unix(socket.into(), path.clone()),
            });
        }
        Ok(by_loop)
    }

    /// Returns another descriptor of the same socket.
    pub fn try_clone(&self) -> io::Result<OwnedFd> {
        match self {
            Listener::Tcp(listener) => listener.as_fd().try_clone_to_owned(),
            Listener::Unix(listener, _) => listener.as_fd().try_clone_to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    fn tcp(text: &str) -> ListenAddress {
        ListenAddress::Tcp(text.parse().unwrap())
    }

    fn inherit(socket: impl Into<OwnedFd>) -> InheritedSocket {
        InheritedSocket::new(socket.into()).unwrap()
    }

    #[test]
    fn the_address_of_an_inherited_socket_is_known() {
        let bound = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ListenAddress::Tcp(bound.local_addr().unwrap());
        assert_eq!(*inherit(bound).address(), address);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a=b;c");
        let bound = UnixListener::bind(&path).unwrap();
        assert_eq!(*inherit(bound).address(), ListenAddress::Unix(path));
    }

    #[test]
    fn an_inherited_socket_serves_only_an_equivalent_address() {
        // The port was free. Binding works without an IPv6 address as well, but not if the kernel
        // has no IPv6.
        let on = |address: &str, only_v6: bool| {
            let address: SocketAddr = address.parse().unwrap();
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).ok()?;
            if address.is_ipv6() {
                socket.set_only_v6(only_v6).unwrap();
            }
            socket.bind(&address.into()).unwrap();
            Some(inherit(socket))
        };
        for (address, only_v6, wanted, serves) in [
            ("127.0.0.1:0", false, "127.0.0.1", true),
            ("127.0.0.1:0", false, "0.0.0.0", false),
            ("0.0.0.0:0", false, "0.0.0.0", true),
            ("0.0.0.0:0", false, "127.0.0.1", false),
            ("0.0.0.0:0", false, "[::]", false),
            ("[::]:0", false, "0.0.0.0", true),
            ("[::]:0", true, "0.0.0.0", false),
            ("[::]:0", true, "[::]", true),
            ("[::]:0", false, "[::1]", false),
        ] {
            let Some(socket) = on(address, only_v6) else {
                assert!(address.starts_with('['), "{address}");
                continue;
            };
            let ListenAddress::Tcp(bound) = socket.address() else { panic!("{address}") };
            let wanted = tcp(&format!("{wanted}:{}", bound.port()));
            assert_eq!(socket.serves(&wanted), serves, "{address} for {wanted}");
            assert!(!socket.serves(&tcp("127.0.0.1:1")), "{address}");
            assert!(!socket.serves(&ListenAddress::Unix("0".into())), "{address}");
        }
    }

    #[test]
    fn another_path_to_the_same_file_is_the_same_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let socket = inherit(UnixListener::bind(&path).unwrap());
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(directory.path(), &link).unwrap();
        assert!(socket.serves(&ListenAddress::Unix(path)));
        assert!(socket.serves(&ListenAddress::Unix(link.join("s"))));
        assert!(!socket.serves(&ListenAddress::Unix(directory.path().join("t"))));
    }

    #[test]
    fn every_loop_has_a_socket_and_every_socket_a_loop() {
        for (sockets, loops) in [(1, 1), (1, 3), (2, 4), (3, 2), (4, 1), (3, 3)] {
            let bound: Vec<OwnedFd> =
                (0..sockets).map(|_| TcpListener::bind("127.0.0.1:0").unwrap().into()).collect();
            let by_loop = Listener::adopt(&tcp("127.0.0.1:1"), &bound, loops).unwrap();
            assert_eq!(by_loop.len(), loops);
            assert!(by_loop.iter().all(|listeners| !listeners.is_empty()), "{sockets} for {loops}");
            for socket in &bound {
                let socket = inherit(socket.try_clone().unwrap());
                let mut listeners = by_loop.iter().flatten();
                let served =
                    listeners.any(|listener| listener.address().unwrap() == *socket.address());
                assert!(served, "{sockets} for {loops}");
            }
        }
    }
}
