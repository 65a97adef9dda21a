//! Messages to systemd about the state of the program (sd_notify(3)). Without systemd, nothing is
//! sent.
//!
//! The crate `sd-notify` reads the socket's name from the environment for each message. Kirin takes
//! the variable out of the environment at the start, so that applications do not inherit it.

use kirin_sockets::NotifySocket;
use rustix::time::{ClockId, clock_gettime};

/// The service manager. There may be none.
#[derive(Clone)]
pub struct Systemd {
    socket: Option<NotifySocket>,
}

impl Systemd {
    /// Returns the service manager behind `socket`.
    pub fn new(socket: Option<NotifySocket>) -> Self {
        Self { socket }
    }

    /// Returns the socket of the service manager.
    pub fn socket(&self) -> Option<&NotifySocket> {
        self.socket.as_ref()
    }

    /// Tells that the program serves, or that a reload is done.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Tells that applications are being reloaded. [`Systemd::ready`] must follow.
    pub fn reloading(&self) {
        let time = clock_gettime(ClockId::Monotonic);
        let microseconds = time.tv_sec * 1_000_000 + time.tv_nsec / 1000;
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// Tells that the program ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Tells that another process is the service from now on.
    pub fn main_process_is(&self, pid: u32) {
        self.send(&format!("MAINPID={pid}"));
    }

    fn send(&self, lines: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(lines)
        {
            tracing::warn!(%error, "systemd cannot be told {}", lines.escape_debug());
        }
    }
}
