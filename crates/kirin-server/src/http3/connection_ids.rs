//! Connection IDs (RFC 9000 section 5.1), by which datagrams find their connection.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator};
use ring::rand::{SecureRandom, SystemRandom};

use super::steering::Steering;

/// The length of an ID.
pub(super) const ID_BYTES: usize = 8;

/// Makes the IDs of one endpoint.
pub(super) struct ConnectionIds {
    random: SystemRandom,
    number: u8,
    steering: Arc<Steering>,
}

impl ConnectionIds {
    /// Makes IDs that name the loop `number`.
    pub(super) fn new(number: u8, steering: Arc<Steering>) -> Self {
        Self { random: SystemRandom::new(), number, steering }
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID_BYTES];
        // The kernel's random numbers do not fail once they have begun.
        _ = self.random.fill(&mut id);
        self.steering.mark(self.number, &mut id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
