//! Connection IDs (RFC 9000 section 5.1), by which datagrams find their connection.
//!
//! The first two octets name the endpoint and the program that the connection belongs to, in a form
//! that nobody else can read: an observer must not recognize a client by them. The others are
//! random. The octets are covered as header protection covers packet numbers (RFC 9001 section
//! 5.4.3).

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use ring::aead::quic::HeaderProtectionKey;
use ring::rand::{SecureRandom, SystemRandom};

use super::secret::Keys;

/// The length of an ID.
pub(super) const ID_BYTES: usize = 8;

/// The octets that are not random.
const PLACE_BYTES: usize = 2;

/// The length of what the cover is made of.
const SAMPLE_BYTES: usize = 16;

/// What an ID names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdPlace {
    /// The number of the endpoint in its program.
    pub(super) endpoint: u8,
    /// The number of the program: each upgrade counts one on.
    pub(super) program: u8,
}

impl IdPlace {
    /// Returns whether this is of the program before the one with the number `program`.
    pub(super) fn is_before(self, program: u8) -> bool {
        self.program.wrapping_add(1) == program
    }
}

/// Writes the places into IDs and reads them.
pub(super) struct IdKey(pub(super) HeaderProtectionKey);

impl IdKey {
    /// Writes a place into an ID of random octets.
    pub(super) fn write(&self, place: IdPlace, id: &mut [u8; ID_BYTES]) {
        let [program, endpoint] = self.cover(id);
        id[0] = place.program ^ program;
        id[1] = place.endpoint ^ endpoint;
    }

    /// Reads the place in an ID.
    pub(super) fn read(&self, id: &[u8; ID_BYTES]) -> IdPlace {
        let [program, endpoint] = self.cover(id);
        IdPlace { program: id[0] ^ program, endpoint: id[1] ^ endpoint }
    }

    /// Returns what covers the place. It depends on the random octets alone.
    fn cover(&self, id: &[u8; ID_BYTES]) -> [u8; PLACE_BYTES] {
        let mut sample = [0; SAMPLE_BYTES];
        sample[PLACE_BYTES..ID_BYTES].copy_from_slice(&id[PLACE_BYTES..]);
        // It fails only for a sample of another length.
        self.0.new_mask(&sample).map_or([0; PLACE_BYTES], |mask| [mask[0], mask[1]])
    }
}

/// Makes the IDs of one endpoint.
pub(super) struct ConnectionIds {
    random: SystemRandom,
    place: IdPlace,
    keys: Arc<Keys>,
}

impl ConnectionIds {
    /// Makes IDs that name `place`.
    pub(super) fn new(place: IdPlace, keys: Arc<Keys>) -> Self {
        Self { random: SystemRandom::new(), place, keys }
    }
}

impl ConnectionIdGenerator for ConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID_BYTES];
        // The kernel's random numbers do not fail once they have begun.
        _ = self.random.fill(&mut id);
        self.keys.ids.write(self.place, &mut id);
        ConnectionId::new(&id)
    }

    /// Accepts what this endpoint or the program before this one has made. The client of an unknown
    /// connection then hears that there is none any more (RFC 9000 section 10.3).
    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let id = id.first_chunk().ok_or(InvalidCid)?;
        let named = self.keys.ids.read(id);
        let is_known = named == self.place || named.is_before(self.place.program);
        is_known.then_some(()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::secret::Secret;
    use super::*;

    fn keys() -> Keys {
        Secret::random().unwrap().keys().unwrap()
    }

    #[test]
    fn a_place_is_read_by_its_key_alone() {
        let (Keys { ids: one, .. }, Keys { ids: other, .. }) = (keys(), keys());
        let mut same = 0;
        for random in 0..=255 {
            let place = IdPlace { endpoint: 3, program: random };
            let mut id = [random; ID_BYTES];
            one.write(place, &mut id);
            assert_eq!(one.read(&id), place);
            same += usize::from(other.read(&id) == place);
        }
        assert!(same < 10, "{same}");
    }

    #[test]
    fn ids_of_one_endpoint_do_not_show_it() {
        let key = keys().ids;
        let place = IdPlace { endpoint: 1, program: 0 };
        let firsts: std::collections::HashSet<[u8; PLACE_BYTES]> = (0..=255)
            .map(|random| {
                let mut id = [random; ID_BYTES];
                key.write(place, &mut id);
                [id[0], id[1]]
            })
            .collect();
        assert!(firsts.len() > 200, "{}", firsts.len());
    }

    #[test]
    fn only_an_id_of_this_endpoint_or_the_program_before_is_valid() {
        let keys = Arc::new(keys());
        let mut ids = ConnectionIds::new(IdPlace { endpoint: 1, program: 2 }, Arc::clone(&keys));
        let own = ids.generate_cid();
        assert!(ids.validate(&own).is_ok());
        for (endpoint, program, is_valid) in [
            (1, 1, true),
            (7, 1, true),
            (7, 0, false),
            (0, 2, false),
            (1, 3, false),
            (1, 100, false),
        ] {
            let mut id = [9; ID_BYTES];
            keys.ids.write(IdPlace { endpoint, program }, &mut id);
            let found = ids.validate(&ConnectionId::new(&id)).is_ok();
            assert_eq!(found, is_valid, "{endpoint} of {program}");
        }
    }
}
