//! Early data (0-RTT, RFC 8446 section 2.3): the requests of a client that comes again, in its
//! first packet.
//!
//! An attacker can record that packet and send it again. So each session is kept here, and it
//! resumes once: a copy of the packet gets a whole handshake, which only the client can end (RFC
//! 8446 section 8.1). Tickets that the server does not keep would not show the copy.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::server::{ProducesTickets, StoresServerSessions};

/// How many sessions are kept. The oldest go first, and their clients need a whole handshake.
/// A session takes some hundred bytes, and each connection leaves two.
const MOST_SESSIONS: usize = 16 * 1024;

/// The most bytes of early data. QUIC has limits of its own for them, and allows no other value
/// (RFC 9001 section 4.6.1).
const MOST_BYTES: u32 = u32::MAX;

/// Keeps sessions in place of tickets that hold them, and accepts early data.
pub(super) fn accept_early_data(config: &mut ServerConfig) {
    config.ticketer = Arc::new(NoTickets);
    config.session_storage = Arc::new(KeptSessions::default());
    config.max_early_data_size = MOST_BYTES;
}

/// The sessions, each of which resumes once. All event loops share them. Unlike rustls' own store,
/// it finds a session without looking at all others.
#[derive(Default)]
struct KeptSessions(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    by_name: HashMap<Vec<u8>, Vec<u8>>,
    /// The names in the order of their sessions, also of those that have resumed.
    names: VecDeque<Vec<u8>>,
}

impl StoresServerSessions for KeptSessions {
    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        let mut sessions = self.0.lock();
        if sessions.names.len() >= MOST_SESSIONS
            && let Some(oldest) = sessions.names.pop_front()
        {
            sessions.by_name.remove(&oldest);
        }
        sessions.names.push_back(name.clone());
        sessions.by_name.insert(name, session);
        true
    }

    fn get(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().by_name.get(name).cloned()
    }

    fn take(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.0.lock().by_name.remove(name)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

impl fmt::Debug for KeptSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptSessions")
    }
}

/// Says that tickets only name a session, which is kept.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_resumes_once_and_the_oldest_go_first() {
        let kept = KeptSessions::default();
        let name = |number: usize| number.to_be_bytes().to_vec();
        for number in 0..=MOST_SESSIONS {
            assert!(kept.put(name(number), vec![1]));
        }
        assert_eq!(kept.take(&name(0)), None, "there was no room for it");
        assert_eq!(kept.get(&name(1)), Some(vec![1]));
        assert_eq!(kept.take(&name(1)), Some(vec![1]));
        assert_eq!(kept.take(&name(1)), None);
        assert!(kept.0.lock().by_name.len() < MOST_SESSIONS);
    }
}
