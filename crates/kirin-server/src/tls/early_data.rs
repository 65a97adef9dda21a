//! Early data (0-RTT, RFC 8446 section 2.3): the requests of a client that comes again, in its
//! first packet.
//!
//! An attacker can record that packet and send it again. So each session is kept here, and it
//! resumes once: a copy of the packet gets a whole handshake, which only the client can end (RFC
//! 8446 section 8.1). Tickets that the server does not keep would not show the copy.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache};

/// How many sessions are kept. The oldest go first, and their clients need a whole handshake.
/// A session takes some hundred bytes, and each connection leaves two.
const MOST_SESSIONS: usize = 16 * 1024;

/// The most bytes of early data. QUIC has limits of its own for them, and allows no other value
/// (RFC 9001 section 4.6.1).
const MOST_BYTES: u32 = u32::MAX;

/// Keeps sessions in place of tickets that hold them, and accepts early data.
pub(super) fn accept_early_data(config: &mut ServerConfig) {
    config.ticketer = Arc::new(KeptSessions);
    config.session_storage = ServerSessionMemoryCache::new(MOST_SESSIONS);
    config.max_early_data_size = MOST_BYTES;
}

/// Says that tickets only name a session, which is kept.
#[derive(Debug)]
struct KeptSessions;

impl ProducesTickets for KeptSessions {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
        None
    }
}
