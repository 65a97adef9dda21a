//! The listening socket, the same for every mode.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// More than the kernel's `somaxconn` is cut to it; a benchmark opens all its connections at once.
const BACKLOG: i32 = 4096;

/// Listens on 127.0.0.1 and `port`, 0 being a free one.
pub fn listen(port: u16, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = bind(port, reuse_port)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Takes `port` without listening on it. A socket that does not listen is given no connections, so
/// with `reuse_port` this keeps a port for the processes that will.
pub fn bind(port: u16, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}
