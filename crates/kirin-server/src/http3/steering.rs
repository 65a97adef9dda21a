//! Which event loop a datagram belongs to, when the kernel has given it to another one.
//!
//! The kernel chooses a loop by the addresses of a datagram. When the address of a client changes,
//! its datagrams may come to a loop that does not know the connection. So the first octet of a
//! connection ID names the loop, in a form that nobody else can read: an observer must not
//! recognize a client by it (RFC 9000 section 5.1).

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::connection_ids::ID_BYTES;
use super::socket::Datagram;

/// The most datagrams that wait for another loop. More are lost, as in the network.
const WAITING_DATAGRAMS: usize = 512;

/// The bit that long headers have (RFC 9000 section 17.2). Their connections are new, and their
/// addresses do not change.
const LONG_HEADER: u8 = 0x80;

/// What the endpoints of a listener share.
pub(super) struct Steering {
    key: RandomState,
    loops: Vec<mpsc::Sender<Datagram>>,
}

/// The place of one endpoint.
pub(crate) struct Place {
    pub(super) number: u8,
    pub(super) steering: Arc<Steering>,
    pub(super) forwarded: mpsc::Receiver<Datagram>,
}

impl Place {
    /// Returns the places of the endpoints of a listener, one for each of `loops` event loops. From
    /// the 257th on, loops get no datagrams of others.
    pub(crate) fn for_loops(loops: usize) -> Vec<Self> {
        let channels = (0..loops).map(|_| mpsc::channel(WAITING_DATAGRAMS));
        let (loops, receivers): (Vec<_>, Vec<_>) = channels.unzip();
        let steering = Arc::new(Steering { key: RandomState::new(), loops });
        let place = |(number, forwarded)| Self {
            number: u8::try_from(number).unwrap_or(u8::MAX),
            steering: Arc::clone(&steering),
            forwarded,
        };
        receivers.into_iter().enumerate().map(place).collect()
    }
}

impl Steering {
    /// Writes the number of a loop into a connection ID of random octets.
    pub(super) fn mark(&self, number: u8, id: &mut [u8; ID_BYTES]) {
        let [first, rest @ ..] = id;
        *first = number ^ self.mask(rest);
    }

    fn mask(&self, rest: &[u8]) -> u8 {
        self.key.hash_one(rest).to_le_bytes()[0]
    }

    /// Returns the number of the loop whose connection a datagram names. `None` if it names none.
    fn number_in(&self, datagram: &[u8]) -> Option<u8> {
        let (first, rest) = datagram.split_first()?;
        if first & LONG_HEADER != 0 {
            return None;
        }
        let [marked, random @ ..] = rest.first_chunk::<ID_BYTES>()?;
        Some(marked ^ self.mask(random))
    }

    /// Gives a datagram to the loop that knows its connection. Returns it if that is the loop
    /// `number` itself, or if there is none.
    pub(super) fn steer(&self, number: u8, datagram: Datagram) -> Option<Datagram> {
        if self.loops.len() < 2 {
            return Some(datagram);
        }
        let named = self.number_in(&datagram.bytes).filter(|named| *named != number);
        match named.and_then(|named| self.loops.get(usize::from(named))) {
            Some(other) => {
                _ = other.try_send(datagram);
                None
            }
            None => Some(datagram),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn datagram(first: u8, id: &[u8]) -> Datagram {
        let bytes = BytesMut::from(&[&[first], id, &[0; 20]].concat()[..]);
        Datagram { bytes, sender: ([127, 0, 0, 1], 1).into(), receiver: None, ecn: None }
    }

    #[test]
    fn a_datagram_gets_to_the_loop_that_its_connection_id_names() {
        let mut places = Place::for_loops(3);
        let steering = Arc::clone(&places[0].steering);
        for random in 0..50 {
            for number in 0..3 {
                let mut id = [random; ID_BYTES];
                steering.mark(number, &mut id);
                let own = steering.steer(number, datagram(0x40, &id));
                assert!(own.is_some(), "it is the loop's own");
                let other = (number + 1) % 3;
                assert!(steering.steer(other, datagram(0x40, &id)).is_none());
                let forwarded = places[usize::from(number)].forwarded.try_recv().unwrap();
                assert_eq!(forwarded.bytes[1..=ID_BYTES], id);
                assert!(steering.steer(other, datagram(0xc0, &id)).is_some(), "a long header");
            }
        }
    }

    #[test]
    fn datagrams_that_are_too_short_and_those_of_a_full_loop_do_no_harm() {
        let places = Place::for_loops(2);
        let steering = &places[0].steering;
        let short = Datagram { bytes: BytesMut::from(&[0x40, 1][..]), ..datagram(0, &[]) };
        assert!(steering.steer(0, short).is_some());
        let mut id = [7; ID_BYTES];
        steering.mark(1, &mut id);
        for _ in 0..2 * WAITING_DATAGRAMS {
            assert!(steering.steer(0, datagram(0x40, &id)).is_none());
        }
        assert_eq!(places[1].forwarded.len(), WAITING_DATAGRAMS);
    }

    #[test]
    fn connection_ids_of_one_loop_do_not_show_it() {
        let places = Place::for_loops(2);
        let firsts: std::collections::HashSet<u8> = (0..=255)
            .map(|random| {
                let mut id = [random; ID_BYTES];
                places[1].steering.mark(1, &mut id);
                id[0]
            })
            .collect();
        assert!(firsts.len() > 100, "{}", firsts.len());
    }
}
