//! Which endpoint a datagram belongs to, when the kernel has given it to another one.
//!
//! The kernel chooses an endpoint by the addresses of a datagram. When the address of a client
//! changes, its datagrams may come to an endpoint that does not know the connection. After an
//! upgrade, the endpoints of the new program receive what the one before has connections for. So a
//! connection ID names its endpoint (`connection_ids.rs`).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use super::connection_ids::{ID_BYTES, IdPlace};
use super::secret::{Keys, Secret};
use super::socket::Datagram;
use super::succession::{self, Introduction, PredecessorLink, SuccessorEnd};

/// The most datagrams that wait for another endpoint. More are lost, as in the network.
const WAITING_DATAGRAMS: usize = 512;

/// The bit that long headers have, and what follows in those of QUIC version 1 with an ID that
/// could be ours: the version and the length of the ID (RFC 9000 section 17.2).
const LONG_HEADER: u8 = 0x80;
const LONG_START: [u8; 5] = [0, 0, 0, 1, ID_BYTES as u8];

/// What the endpoints of a UDP address share.
pub(super) struct Steering {
    /// The keys of the address.
    pub(super) keys: Arc<Keys>,
    program: u8,
    endpoints: Vec<mpsc::Sender<Datagram>>,
    predecessor: Option<PredecessorLink>,
    /// Whether the next program receives on the sockets.
    has_receiving_successor: AtomicBool,
}

/// The place of one endpoint.
pub(crate) struct Place {
    pub(super) id: IdPlace,
    pub(super) steering: Arc<Steering>,
    pub(super) forwarded: mpsc::Receiver<Datagram>,
    /// Where the next program talks to this one. The first endpoint has it.
    pub(super) successor: Option<SuccessorEnd>,
}

/// The places of the endpoints of a UDP address.
pub(crate) struct Places {
    pub(crate) places: Vec<Place>,
    /// The end of the link that the next program gets.
    pub(crate) for_successor: OwnedFd,
}

impl Places {
    /// Returns the places of `count` endpoints. From the 257th on, they get no datagrams of others.
    pub(crate) fn new(count: usize) -> io::Result<Self> {
        Self::with(count, Secret::random()?, 0, None)
    }

    /// Returns the places of endpoints that follow those of another program, by its link.
    pub(crate) fn following(count: usize, link: OwnedFd) -> io::Result<Self> {
        let link = PredecessorLink::new(link)?;
        let Introduction { secret, program, .. } = &link.introduction;
        let (secret, program) = (secret.clone(), program.wrapping_add(1));
        Self::with(count, secret, program, Some(link))
    }

    fn with(
        count: usize,
        secret: Secret,
        program: u8,
        predecessor: Option<PredecessorLink>,
    ) -> io::Result<Self> {
        let channels = (0..count).map(|_| mpsc::channel(WAITING_DATAGRAMS));
        let (endpoints, receivers): (Vec<_>, Vec<_>) = channels.unzip();
        let number = |at: usize| u8::try_from(at).unwrap_or(u8::MAX);
        let last_endpoint = number(count.saturating_sub(1));
        let keys = secret.keys()?;
        let introduction = Introduction { program, last_endpoint, secret };
        let (successor, for_successor) = succession::open(&introduction)?;
        let mut successor = Some(successor);
        let steering = Arc::new(Steering {
            keys: Arc::new(keys),
            program,
            endpoints,
            predecessor,
            has_receiving_successor: AtomicBool::new(false),
        });
        let place = |(at, forwarded)| Place {
            id: IdPlace { endpoint: number(at), program },
            steering: Arc::clone(&steering),
            forwarded,
            successor: successor.take(),
        };
        Ok(Self { places: receivers.into_iter().enumerate().map(place).collect(), for_successor })
    }
}

impl Steering {
    /// Tells the program before that this one receives.
    pub(super) fn receives(&self) {
        if let Some(predecessor) = &self.predecessor {
            predecessor.receives();
        }
    }

    /// Notes that the next program receives.
    pub(super) fn successor_receives(&self) {
        self.has_receiving_successor.store(true, Ordering::Relaxed);
    }

    /// Returns whether the next program receives.
    pub(super) fn has_receiving_successor(&self) -> bool {
        self.has_receiving_successor.load(Ordering::Relaxed)
    }

    /// Waits until all endpoints have ended but for `own`.
    pub(super) async fn others_end(&self, own: IdPlace) {
        for (number, endpoint) in self.endpoints.iter().enumerate() {
            if number != usize::from(own.endpoint) {
                endpoint.closed().await;
            }
        }
    }

    /// Gives a datagram to the endpoint that knows its connection. Returns it if that is `own`, or
    /// if none is known.
    pub(super) fn steer(&self, own: IdPlace, datagram: Datagram) -> Option<Datagram> {
        let predecessor = self.predecessor.as_ref().filter(|link| !link.is_gone());
        if self.endpoints.len() < 2 && predecessor.is_none() {
            return Some(datagram);
        }
        let Some(named) = self.named(&datagram.bytes) else { return Some(datagram) };
        if named == own {
            return Some(datagram);
        }
        if named.program == self.program {
            let Some(other) = self.endpoints.get(usize::from(named.endpoint)) else {
                return Some(datagram);
            };
            _ = other.try_send(datagram);
            return None;
        }
        let Some(predecessor) = predecessor else { return Some(datagram) };
        // The first datagram of a new connection has an ID of the client's choice, which hardly
        // ever names an endpoint that there is.
        let last = predecessor.introduction.last_endpoint;
        if named.is_before(self.program) && named.endpoint <= last {
            // If that program has ended, the client hears it from the endpoint.
            return (!predecessor.forward(&datagram)).then_some(datagram);
        }
        Some(datagram)
    }

    /// Returns what a datagram names.
    fn named(&self, datagram: &[u8]) -> Option<IdPlace> {
        let (first, rest) = datagram.split_first()?;
        let id = match first & LONG_HEADER {
            0 => rest,
            _ => rest.strip_prefix(&LONG_START)?,
        };
        Some(self.keys.ids.read(id.first_chunk()?))
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn datagram(first: u8, id: &[u8]) -> Datagram {
        let start: &[u8] = if first & LONG_HEADER == 0 { &[] } else { &LONG_START };
        let bytes = BytesMut::from(&[&[first], start, id, &[0; 20]].concat()[..]);
        Datagram { bytes, sender: ([127, 0, 0, 1], 1).into(), receiver: None, ecn: None }
    }

    fn id_of(place: &Place, random: u8) -> [u8; ID_BYTES] {
        let mut id = [random; ID_BYTES];
        place.steering.keys.ids.write(place.id, &mut id);
        id
    }

    #[test]
    fn a_datagram_gets_to_the_endpoint_that_its_connection_id_names() {
        let mut places = Places::new(3).unwrap().places;
        let steering = Arc::clone(&places[0].steering);
        for (random, first) in (0..50).flat_map(|random| [(random, 0x40), (random, 0xe0)]) {
            for number in 0..3 {
                let id = id_of(&places[number], random);
                let own = steering.steer(places[number].id, datagram(first, &id));
                assert!(own.is_some(), "it is the endpoint's own");
                let other = places[(number + 1) % 3].id;
                assert!(steering.steer(other, datagram(first, &id)).is_none());
                let forwarded = places[number].forwarded.try_recv().unwrap();
                assert_eq!(forwarded.bytes, datagram(first, &id).bytes);
            }
        }
    }

    #[test]
    fn datagrams_that_are_too_short_and_those_of_a_full_endpoint_do_no_harm() {
        let places = Places::new(2).unwrap().places;
        let steering = &places[0].steering;
        for bytes in [&[0x40, 1][..], &[0xc0, 0, 0, 0, 1, 8, 1], &[0xc0], &[]] {
            let short = Datagram { bytes: BytesMut::from(bytes), ..datagram(0, &[]) };
            assert!(steering.steer(places[0].id, short).is_some());
        }
        let id = id_of(&places[1], 7);
        for _ in 0..2 * WAITING_DATAGRAMS {
            assert!(steering.steer(places[0].id, datagram(0x40, &id)).is_none());
        }
        assert_eq!(places[1].forwarded.len(), WAITING_DATAGRAMS);
    }

    #[test]
    fn what_the_program_before_has_goes_back_to_it() {
        let Places { places: before, for_successor } = Places::new(2).unwrap();
        let places = Places::following(1, for_successor).unwrap().places;
        let (own, steering) = (places[0].id, &places[0].steering);
        for first in [0xc0, 0x40] {
            for old in &before {
                assert!(steering.steer(own, datagram(first, &id_of(old, 3))).is_none());
            }
            let id = id_of(&places[0], 3);
            assert!(steering.steer(own, datagram(first, &id)).is_some());
            // A program does not know what the next one has.
            assert!(before[0].steering.steer(before[0].id, datagram(first, &id)).is_some());
        }
    }

    #[test]
    fn a_new_connection_is_the_new_program_s() {
        let Places { places: _before, for_successor } = Places::new(1).unwrap();
        let places = Places::following(1, for_successor).unwrap().places;
        let steering = &places[0].steering;
        let kept = (0..=255).filter(|random| {
            let id = [*random, 1, 2, 3, 4, 5, 6, *random];
            steering.steer(places[0].id, datagram(0xc0, &id)).is_some()
        });
        assert!(kept.count() > 250);
    }
}
