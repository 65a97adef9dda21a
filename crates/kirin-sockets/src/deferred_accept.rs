//! TCP_DEFER_ACCEPT (tcp(7)): the kernel hands a connection over when its first bytes have come, so
//! that they can be read at once.
//!
//! It drops the bare acknowledgement that ends the client's handshake. A client that sends nothing
//! is asked for it again after [`SILENCE`], and is then handed over as it is.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// How long a silent client stays in the kernel: until it sends the second packet of the handshake
/// again (RFC 6298 section 2).
pub const SILENCE: Duration = Duration::from_secs(1);

/// Sets it on a listening TCP socket.
pub fn set(socket: &impl AsFd) -> io::Result<()> {
    let seconds: libc::c_int = 1;
    // SAFETY: the pointer is to an int that lives during the call, and the length is that of an
    // int (tcp(7)). The descriptor is open, because it is borrowed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::silent_clients::has_silent_clients;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_client_is_handed_over_with_its_first_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        set(&listener).unwrap();
        assert!(!has_silent_clients(&address));
        let mut client = TcpStream::connect(address).unwrap();
        assert!(has_silent_clients(&address));
        client.write_all(b"GET").unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let mut bytes = [0; 3];
        // They are there without waiting.
        accepted.set_nonblocking(true).unwrap();
        assert_eq!(std::io::Read::read(&mut { accepted }, &mut bytes).unwrap(), 3);
        assert!(!has_silent_clients(&address));
    }

    #[test]
    fn a_silent_client_is_handed_over_later() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                assert_eq!(address, "[::1]:0", "this machine may have no IPv6");
                continue;
            };
            set(&listener).unwrap();
            let address = listener.local_addr().unwrap();
            let _client = TcpStream::connect(address).unwrap();
            assert!(has_silent_clients(&address), "{address}");
            listener.accept().unwrap();
            assert!(!has_silent_clients(&address), "{address}");
        }
    }

    #[test]
    fn only_a_unix_socket_refuses() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(set(&one).is_err());
    }
}
