//! UDP sockets for HTTP/3.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use kirin_http::handler::Handler;
use kirin_http::listen_address::ListenAddress;
use kirin_sockets::DatagramSockets;
use socket2::{Domain, Socket, Type};

use crate::http3::endpoint;
pub use crate::http3::endpoint::EndpointEnd;
use crate::http3::steering::{Place, Places};
use crate::listening::listener::{BindOptions, ListenError};
use crate::server::InForce;

/// The UDP sockets of an address.
pub struct OpenedDatagrams {
    /// The sockets, by event loop.
    pub by_loop: Vec<Vec<DatagramListener>>,
    /// What the next program gets.
    pub for_successor: DatagramSockets,
}

/// A bound UDP socket on which no event loop serves yet.
pub struct DatagramListener {
    socket: UdpSocket,
    place: Place,
}

impl OpenedDatagrams {
    /// Binds a socket for each of `loops` event loops at the address of a TCP socket. The kernel
    /// distributes clients over them by their addresses (SO_REUSEPORT, socket(7)). With
    /// `is_shared`, another process may have sockets there too.
    pub fn bind(
        address: SocketAddr,
        loops: usize,
        is_shared: bool,
        options: &BindOptions,
    ) -> Result<Self, ListenError> {
        let bind_one = |reuse_port| bind(address, reuse_port, options).map_err(failure(address));
        if !is_shared {
            // With SO_REUSEPORT, a second Kirin could bind the same port without an error.
            bind_one(false)?;
        }
        let sockets = (0..loops).map(|_| bind_one(true)).collect::<Result<Vec<_>, _>>()?;
        let opened = Places::new(loops).and_then(|places| Self::with(places, sockets, loops));
        opened.map_err(|error| ListenError::Datagrams(ListenAddress::Tcp(address), error))
    }

    /// Distributes the sockets of the program before over `loops` event loops. Every socket belongs
    /// to some loop, because the kernel gives each a part of the clients. If there are fewer
    /// sockets than loops, loops share them.
    ///
    /// # Errors
    /// The program before is a Kirin that hands over in another way.
    pub fn adopt(inherited: DatagramSockets, loops: usize) -> io::Result<Self> {
        let DatagramSockets { link, sockets } = inherited;
        let places = Places::following(sockets.len().max(loops), link)?;
        Self::with(places, sockets.into_iter().map(UdpSocket::from).collect(), loops)
    }

    fn with(places: Places, sockets: Vec<UdpSocket>, loops: usize) -> io::Result<Self> {
        let Places { places, for_successor: link } = places;
        let mut by_loop: Vec<Vec<DatagramListener>> = (0..loops).map(|_| Vec::new()).collect();
        for (number, place) in places.into_iter().enumerate() {
            let socket = sockets[number % sockets.len()].try_clone()?;
            by_loop[number % loops].push(DatagramListener { socket, place });
        }
        let sockets = sockets.into_iter().map(OwnedFd::from).collect();
        Ok(Self { by_loop, for_successor: DatagramSockets { link, sockets } })
    }
}

/// Checks whether the UDP port with the number of a TCP port can be bound. Only if the TCP port
/// can: otherwise a Kirin serves there, or this process may not bind such a port.
pub fn check(address: SocketAddr) -> Result<(), ListenError> {
    let options = BindOptions::default();
    match bind_socket(Type::STREAM, address, false, &options) {
        Ok(_) => bind(address, false, &options).map(drop).map_err(failure(address)),
        Err(_) => Ok(()),
    }
}

/// Returns the error of a UDP port that the kernel has refused.
fn failure(address: SocketAddr) -> impl Fn(io::Error) -> ListenError {
    move |error| match error.kind() {
        io::ErrorKind::AddrInUse => ListenError::DatagramsInUse(ListenAddress::Tcp(address)),
        _ => ListenError::Datagrams(ListenAddress::Tcp(address), error),
    }
}

fn bind(address: SocketAddr, reuse_port: bool, options: &BindOptions) -> io::Result<UdpSocket> {
    Ok(bind_socket(Type::DGRAM, address, reuse_port, options)?.into())
}

fn bind_socket(
    kind: Type,
    address: SocketAddr,
    reuse_port: bool,
    options: &BindOptions,
) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    socket.set_reuse_port(reuse_port)?;
    if options.only_v6 && address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Serves HTTP/3 on a socket until `ends` completes, and then ends all connections.
///
/// # Errors
/// The socket cannot be registered with the event loop.
pub async fn serve<H: Handler>(
    socket: DatagramListener,
    in_force: Rc<InForce<H>>,
    ends: impl Future<Output = EndpointEnd>,
) -> io::Result<()> {
    let DatagramListener { socket, place } = socket;
    endpoint::serve(socket, place, in_force, ends).await
}
