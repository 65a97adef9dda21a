//! UDP sockets for HTTP/3.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use kirin_http::handler::Handler;
use kirin_http::listen_address::ListenAddress;
use socket2::{Domain, Protocol, Socket, Type};

use crate::http3::endpoint;
use crate::http3::steering::Place;
use crate::listening::listener::{BindOptions, ListenError};
use crate::server::InForce;

/// A bound UDP socket on which no event loop serves yet.
pub struct DatagramListener {
    socket: UdpSocket,
    place: Place,
}

impl DatagramListener {
    /// Binds a socket for each of `loops` event loops at the address of a TCP socket. The kernel
    /// distributes clients over them by their addresses (SO_REUSEPORT, socket(7)). With
    /// `is_shared`, another process may have sockets there too.
    pub fn bind(
        address: SocketAddr,
        loops: usize,
        is_shared: bool,
        options: &BindOptions,
    ) -> Result<Vec<Self>, ListenError> {
        let failed = |error: io::Error| {
            let address = ListenAddress::Tcp(address);
            match error.kind() {
                io::ErrorKind::AddrInUse => ListenError::DatagramsInUse(address),
                _ => ListenError::Io(address, error),
            }
        };
        if !is_shared {
            // With SO_REUSEPORT, a second Kirin could bind the same port without an error.
            bind(address, false, options).map_err(failed)?;
        }
        let bind = |place| {
            let socket = bind(address, true, options).map_err(failed)?;
            Ok(Self { socket, place })
        };
        Place::for_loops(loops).into_iter().map(bind).collect()
    }
}

fn bind(address: SocketAddr, reuse_port: bool, options: &BindOptions) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(reuse_port)?;
    if options.only_v6 && address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Serves HTTP/3 on a socket until `ends` completes, and then ends all connections. `ends` returns
/// how long requests in progress may take.
///
/// # Errors
/// The socket cannot be registered with the event loop.
pub async fn serve<H: Handler>(
    socket: DatagramListener,
    in_force: Rc<InForce<H>>,
    ends: impl Future<Output = Duration>,
) -> io::Result<()> {
    let DatagramListener { socket, place } = socket;
    endpoint::serve(socket, place, in_force, ends).await
}
