//! Takes connections out of a listening socket. They are not registered with the event loop: most
//! first requests are there already ([`ClientSocket`]).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use kirin_faults::{Errno, Point};
use kirin_http::peer::Peer;
use kirin_sockets::{deferred_accept, silent_clients};
use rustix::net::SocketFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::connection::client_socket::ClientSocket;
use crate::connection::io::{Io, Stream};
use crate::listening::listener::{BACKLOG, Listener};
use crate::server::Server;

static ACCEPT: Point =
    Point::new("client.accept", &[Errno::CONNABORTED, Errno::MFILE, Errno::NFILE, Errno::NOBUFS]);

/// A listening socket on an event loop.
pub(super) struct Accepting {
    socket: AsyncFd<OwnedFd>,
    /// The address of a TCP socket.
    address: Option<SocketAddr>,
}

/// A connection that has been accepted.
pub(super) struct Accepted {
    pub(super) socket: OwnedFd,
    pub(super) peer: Peer,
}

impl Accepting {
    pub(super) fn new(listener: Listener) -> io::Result<Self> {
        let (socket, address): (OwnedFd, _) = match listener {
            Listener::Tcp(listener) => {
                let address = listener.local_addr()?;
                if let Err(error) = deferred_accept::set(&listener) {
                    tracing::debug!(%address, %error, "TCP_DEFER_ACCEPT");
                }
                (listener.into(), Some(address))
            }
            Listener::Unix(listener, _) => (listener.into(), None),
        };
        #[expect(
            deprecated,
            reason = "the other constructor is unsafe, for types that close early"
        )]
        let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
        Ok(Self { socket, address })
    }

    /// Waits for a connection.
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        self.socket.async_io(Interest::READABLE, Accepted::take).await
    }

    /// Returns whether a client has connected and is not to be accepted yet, because it has sent
    /// nothing.
    pub(super) fn has_silent_clients(&self) -> bool {
        self.address.is_some_and(|address| silent_clients::has_silent_clients(&address))
    }

    /// Accepts the connections that are waiting now. It asks the kernel, whereas
    /// [`Accepting::accept`] asks the reactor, which may not know of them yet.
    pub(super) fn accept_waiting(self) -> Vec<Accepted> {
        let take = || Accepted::take(self.socket.get_ref()).ok();
        std::iter::from_fn(take).take(BACKLOG as usize).collect()
    }
}

impl Accepted {
    fn take(listener: &OwnedFd) -> io::Result<Self> {
        ACCEPT.pass()?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (socket, address) = rustix::net::acceptfrom_with(listener.as_fd(), flags)?;
        // Only the clients of a unix socket have no such address.
        let address = address.and_then(|address| SocketAddr::try_from(address).ok());
        Ok(Self { socket, peer: address.map_or(Peer::Unix, Peer::Tcp) })
    }

    /// Begins a connection with the settings of `server`.
    pub(super) fn into_io<H>(self, server: &Server<H>) -> io::Result<Io> {
        let socket = ClientSocket::new(self.socket);
        let stream = match server.tls.as_deref() {
            None => Stream::Plain(socket),
            Some(tls) => Stream::Tls(Box::new(tls.stream(socket)?)),
        };
        Ok(Io::new(stream, self.peer, &server.deadlines))
    }
}
