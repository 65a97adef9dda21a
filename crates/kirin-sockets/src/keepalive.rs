//! TCP keepalive. The kernel sends probes to a peer that has been silent. So a peer that vanished
//! without closing its connection (a cable, a power failure, a firewall) does not hold it for ever.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// Silence after which the first probe is sent, the time between probes, and how many may stay
/// unanswered: a peer that has vanished is noticed after two minutes.
const IDLE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_secs(15);
const PROBES: u32 = 4;

/// Sets it on a TCP socket. What a listening socket has, accepted ones inherit.
pub fn set(socket: &impl AsFd) -> io::Result<()> {
    let keepalive =
        TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL).with_retries(PROBES);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}
