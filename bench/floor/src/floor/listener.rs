//! The listening socket, which is the same in every mode.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// The length of the queue of new connections; a benchmark opens all connections at once. The
/// kernel lowers it to `somaxconn`.
const BACKLOG: i32 = 4096;

/// Listens on 127.0.0.1 and `port`. Port 0 takes a free one.
pub fn listen(port: u16, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = bind(port, reuse_port)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Binds `port` without listening on it. The kernel gives no connections to such a socket. With
/// `reuse_port` it therefore reserves the port for the processes that will listen.
pub fn bind(port: u16, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}
