//! What systemd is told, if it wants to hear (sd_notify(3)); nothing otherwise.

use kirin_sockets::NotifySocket;
use rustix::time::{ClockId, clock_gettime};

/// The service manager, if there is one.
#[derive(Clone)]
pub struct Systemd {
    socket: Option<NotifySocket>,
}

impl Systemd {
    /// The one behind `socket`.
    pub fn new(socket: Option<NotifySocket>) -> Self {
        Self { socket }
    }

    /// Where it listens.
    pub fn socket(&self) -> Option<&NotifySocket> {
        self.socket.as_ref()
    }

    /// The program serves, or has done what it was asked to do.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// Applications are loaded anew; [`Systemd::ready`] follows.
    pub fn reloading(&self) {
        let time = clock_gettime(ClockId::Monotonic);
        let microseconds = time.tv_sec * 1_000_000 + time.tv_nsec / 1000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    /// The program ends.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// Another process is the service from now on.
    pub fn main_process_is(&self, pid: u32) {
        self.say(&format!("MAINPID={pid}"));
    }

    fn say(&self, lines: &str) {
        if let Some(socket) = &self.socket
            && let Err(error) = socket.say(lines)
        {
            tracing::warn!(%error, "systemd cannot be told {}", lines.escape_debug());
        }
    }
}
