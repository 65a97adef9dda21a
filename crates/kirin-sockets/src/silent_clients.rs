//! Clients that have connected to a listening socket, and that the kernel has not handed over,
//! since they have sent nothing ([`deferred_accept`](crate::deferred_accept)).
//!
//! The kernel tells of them by sock_diag(7), which looks only at the sockets of one port. A server
//! may have a hundred thousand sockets in TIME_WAIT, so that /proc/net/tcp takes too long.

use std::io;
use std::net::SocketAddr;

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The header of a message (netlink(7)): length, type, flags, sequence number and port.
const HEADER_BYTES: usize = 16;

/// `SOCK_DIAG_BY_FAMILY` of sock_diag(7).
const BY_FAMILY: u16 = 20;

/// `NLM_F_REQUEST` and `NLM_F_DUMP` of netlink(7).
const DUMP: u16 = 0x301;

/// `NLMSG_NOOP`, `NLMSG_ERROR` and `NLMSG_DONE` of netlink(7) are below this type.
const FIRST_DATA: u16 = 16;

/// `IPPROTO_TCP`.
const TCP: u8 = 6;

/// The state of a connection whose handshake has not ended (`TCP_SYN_RECV` in
/// `include/net/tcp_states.h` of the kernel).
const SYN_RECV: u32 = 3;

/// Room for the first part of an answer, in bytes. A truncated one says enough.
const ANSWER_BYTES: usize = 8 * 1024;

/// The longest wait for the kernel, which answers within microseconds.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(100);

/// Returns whether there are such clients of a socket that listens at `address`. A handshake in
/// progress counts. Returns false if the kernel does not tell.
pub fn has_silent_clients(address: &SocketAddr) -> bool {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        // It lists its IPv4 clients, too.
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    asks(family, address.port()).unwrap_or(false)
}

fn asks(family: AddressFamily, port: u16) -> io::Result<bool> {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    rustix::net::send(&socket, &request(family, port), SendFlags::NOSIGNAL)?;
    let mut answer = [0; ANSWER_BYTES];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    // An entry, the end of the list, or an error.
    let kind = answer[..length].get(4..6).map_or(0, |kind| u16::from_ne_bytes([kind[0], kind[1]]));
    Ok(kind >= FIRST_DATA)
}

/// Returns the question for the connections to `port` whose handshake has not ended: a `nlmsghdr`
/// and an `inet_diag_req_v2`.
fn request(family: AddressFamily, port: u16) -> Vec<u8> {
    let mut message = Vec::with_capacity(72);
    message.extend([0; 4]);
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(DUMP.to_ne_bytes());
    message.extend([0; 8]);
    debug_assert!(message.len() == HEADER_BYTES, "{} bytes of header", message.len());
    message.extend([family.as_raw() as u8, TCP, 0, 0]);
    message.extend((1_u32 << SYN_RECV).to_ne_bytes());
    message.extend(port.to_be_bytes());
    // Any other port, any addresses, any interface.
    message.extend([0; 2 + 16 + 16 + 4]);
    // No cookie: not one certain socket.
    message.extend([0xFF; 8]);
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deferred_accept;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn clients_of_other_ports_do_not_count() {
        let [listener, other] = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        deferred_accept::set(&other).unwrap();
        let _client = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        assert!(has_silent_clients(&other.local_addr().unwrap()));
        assert!(!has_silent_clients(&listener.local_addr().unwrap()));
    }
}
