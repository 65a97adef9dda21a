//! The account of the bytes that the server holds for clients: request bodies, responses that a
//! client has not taken yet, and the files that hold either.
//!
//! Each resource has one limit for the process. A listener may have a lower one. An address may
//! hold no more than what is left for all others, so that no client can take everything. A
//! [`Reservation`] is taken before bytes are kept, and gives them back when it is dropped.
//!
//! Several addresses together could still fill the account. Therefore, while more than three
//! quarters of it are taken, the event loops close the busy connections of the address that holds
//! most ([`ClientBytes::heaviest_address`]), once a second.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kirin_faults::Point;
use parking_lot::Mutex;

/// Number of locks over the addresses. With several, two event loops rarely wait for the same lock.
const SHARDS: usize = 16;

static TAKE: Point = Point::new("memory.client", &[]);

/// Request heads of up to this size are not counted.
const SHORT_HEAD_BYTES: usize = 4 * 1024;

/// The resource that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Memory of the process.
    Memory,
    /// Space in temporary files.
    Disk,
}

/// The account has no room for more bytes of this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("clients hold too many bytes: limits.{} has no room for this one", match .0 {
    Resource::Memory => "client_memory",
    Resource::Disk => "client_disk",
})]
pub struct NoRoom(pub Resource);

/// The limit of one resource, and how much of it is held.
#[derive(Debug)]
struct Ledger {
    limit: AtomicU64,
    held: AtomicU64,
    refused: AtomicU64,
}

/// The account of all clients of the process.
#[derive(Debug)]
pub struct ClientBytes {
    memory: Total,
    disk: Total,
    cut: AtomicU64,
}

#[derive(Debug)]
struct Total {
    ledger: Ledger,
    addresses: [Mutex<HashMap<u64, u64>>; SHARDS],
}

/// The account of the clients of one listener.
#[derive(Debug)]
pub struct ListenerBytes {
    all: Arc<ClientBytes>,
    memory: Ledger,
    disk: Ledger,
}

/// An event loop's own reference to the account of a listener. Requests refer to it without
/// changing a counter that the loops share.
#[derive(Debug)]
pub struct LoopAccount(pub Arc<ListenerBytes>);

/// Figures of one resource, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountFigures {
    /// The bytes that are held now.
    pub held: u64,
    /// The most bytes that may be held.
    pub limit: u64,
    /// How often there was no room.
    pub refused: u64,
}

/// The client for which bytes are counted, at one listener. Without a listener nothing is counted,
/// which is for bytes that the server holds for itself.
#[derive(Clone, Debug, Default)]
pub struct ClientShare {
    listener: Option<Rc<LoopAccount>>,
    /// `None` for clients without an address, and for an address that stands for many clients.
    address: Option<u64>,
}

/// Bytes that are held for a client. Dropping this gives them back.
#[derive(Debug)]
pub struct Reservation {
    share: ClientShare,
    resource: Resource,
    bytes: u64,
}

impl Ledger {
    fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), held: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }

    fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Adds `bytes` if there is room. Returns how much is held then.
    fn take(&self, bytes: u64) -> Option<u64> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held <= self.limit() {
            return Some(held);
        }
        self.give_back(bytes);
        None
    }

    fn give_back(&self, bytes: u64) {
        let held = self.held.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(held >= bytes, "{bytes} bytes are given back, and {held} were held");
    }

    fn observed(&self) -> AccountFigures {
        AccountFigures {
            held: self.held.load(Ordering::Relaxed),
            limit: self.limit(),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

impl Total {
    fn new(limit: u64) -> Self {
        Self { ledger: Ledger::new(limit), addresses: Default::default() }
    }

    fn shard(&self, address: u64) -> &Mutex<HashMap<u64, u64>> {
        &self.addresses[(address ^ address >> 8 ^ address >> 32) as usize % SHARDS]
    }

    fn take(&self, bytes: u64, address: Option<u64>) -> bool {
        let Some(held) = self.ledger.take(bytes) else { return false };
        let Some(address) = address else { return true };
        let mut addresses = self.shard(address).lock();
        let before = addresses.get(&address).copied().unwrap_or(0);
        // The limit may have become lower a moment ago.
        if before + bytes <= self.ledger.limit().saturating_sub(held) {
            addresses.insert(address, before + bytes);
            return true;
        }
        self.ledger.give_back(bytes);
        false
    }

    fn give_back(&self, bytes: u64, address: Option<u64>) {
        if let Some(address) = address {
            let mut addresses = self.shard(address).lock();
            debug_assert!(addresses.contains_key(&address), "nothing is held for {address:x}");
            if let Some(held) = addresses.get_mut(&address) {
                debug_assert!(*held >= bytes, "{address:x} holds {held} bytes and frees {bytes}");
                *held -= bytes;
                if *held == 0 {
                    addresses.remove(&address);
                }
            }
        }
        self.ledger.give_back(bytes);
    }

    fn heaviest_address(&self) -> Option<u64> {
        let AccountFigures { held, limit, .. } = self.ledger.observed();
        if held <= limit / 4 * 3 {
            return None;
        }
        let heaviest_of = |shard: &Mutex<HashMap<u64, u64>>| {
            shard
                .lock()
                .iter()
                .max_by_key(|(_, held)| **held)
                .map(|(address, held)| (*held, *address))
        };
        self.addresses.iter().filter_map(heaviest_of).max().map(|(_, address)| address)
    }
}

impl ClientBytes {
    /// Returns an account with these limits for the process, in bytes.
    pub fn new(memory: u64, disk: u64) -> Arc<Self> {
        Arc::new(Self {
            memory: Total::new(memory),
            disk: Total::new(disk),
            cut: AtomicU64::new(0),
        })
    }

    /// Sets other limits, in bytes. Who holds more than a lower limit allows keeps it, and gets
    /// nothing more.
    pub fn set_limits(&self, memory: u64, disk: u64) {
        self.memory.ledger.set_limit(memory);
        self.disk.ledger.set_limit(disk);
    }

    /// Returns the figures of all clients for `resource`.
    pub fn observed(&self, resource: Resource) -> AccountFigures {
        self.total(resource).ledger.observed()
    }

    /// Returns the address that holds most of a resource of which more than three quarters are
    /// taken. `address_key` of `kirin-http` makes the number.
    pub fn heaviest_address(&self) -> Option<u64> {
        self.memory.heaviest_address().or_else(|| self.disk.heaviest_address())
    }

    /// Returns how many connections were closed because most was held for their address.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    fn total(&self, resource: Resource) -> &Total {
        match resource {
            Resource::Memory => &self.memory,
            Resource::Disk => &self.disk,
        }
    }
}

impl ListenerBytes {
    /// Returns the account of one listener as a part of `all`, with its own limits in bytes.
    /// Without them it may hold everything.
    pub fn new(all: &Arc<ClientBytes>, memory: Option<u64>, disk: Option<u64>) -> Arc<Self> {
        let unlimited = || Ledger::new(u64::MAX);
        let bytes = Self { all: Arc::clone(all), memory: unlimited(), disk: unlimited() };
        bytes.set_limits(memory, disk);
        Arc::new(bytes)
    }

    /// Sets other limits, as [`ListenerBytes::new`] does.
    pub fn set_limits(&self, memory: Option<u64>, disk: Option<u64>) {
        self.memory.set_limit(memory.unwrap_or_else(|| self.all.memory.ledger.limit()));
        self.disk.set_limit(disk.unwrap_or_else(|| self.all.disk.ledger.limit()));
    }

    /// Returns the figures of the clients of this listener for `resource`.
    pub fn observed(&self, resource: Resource) -> AccountFigures {
        self.ledger(resource).observed()
    }

    /// Counts connections that were closed because most was held for their address.
    pub fn count_cut(&self, connections: u64) {
        self.all.cut.fetch_add(connections, Ordering::Relaxed);
    }

    /// Returns the address that holds most, as [`ClientBytes::heaviest_address`] does.
    pub fn heaviest_address(&self) -> Option<u64> {
        self.all.heaviest_address()
    }

    fn ledger(&self, resource: Resource) -> &Ledger {
        match resource {
            Resource::Memory => &self.memory,
            Resource::Disk => &self.disk,
        }
    }

    fn take(&self, resource: Resource, bytes: u64, address: Option<u64>) -> Result<(), NoRoom> {
        debug_assert!(bytes > 0, "an address that holds nothing would have an entry");
        let (own, all) = (self.ledger(resource), self.all.total(resource));
        if !TAKE.refuses() && own.take(bytes).is_some() {
            if all.take(bytes, address) {
                return Ok(());
            }
            own.give_back(bytes);
        }
        own.refused.fetch_add(1, Ordering::Relaxed);
        all.ledger.refused.fetch_add(1, Ordering::Relaxed);
        Err(NoRoom(resource))
    }

    fn give_back(&self, resource: Resource, bytes: u64, address: Option<u64>) {
        self.all.total(resource).give_back(bytes, address);
        self.ledger(resource).give_back(bytes);
    }
}

impl ClientShare {
    /// Returns the share of the client with this address at a listener.
    pub fn new(listener: Option<&Rc<LoopAccount>>, address: Option<u64>) -> Self {
        Self { listener: listener.cloned(), address }
    }

    /// Returns the address whose bytes are counted.
    pub fn address(&self) -> Option<u64> {
        self.address
    }

    /// Counts the copy of a request head if it is long. Most heads are short, and a client has only
    /// a few of them at a time.
    pub fn reserve_head(&self, bytes: usize) -> Result<Option<Reservation>, NoRoom> {
        (bytes > SHORT_HEAD_BYTES).then(|| self.reserve(Resource::Memory, bytes as u64)).transpose()
    }

    /// Counts `bytes` for the client.
    pub fn reserve(&self, resource: Resource, bytes: u64) -> Result<Reservation, NoRoom> {
        let mut reservation = Reservation { share: self.clone(), resource, bytes: 0 };
        reservation.resize(bytes)?;
        Ok(reservation)
    }
}

impl Reservation {
    /// Changes the number of counted bytes to `bytes`. If there is no room for more, the
    /// reservation stays as it was.
    pub fn resize(&mut self, bytes: u64) -> Result<(), NoRoom> {
        if let Some(listener) = &self.share.listener {
            if bytes > self.bytes {
                listener.0.take(self.resource, bytes - self.bytes, self.share.address)?;
            } else if bytes < self.bytes {
                listener.0.give_back(self.resource, self.bytes - bytes, self.share.address);
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Returns the number of bytes that are counted.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(listener) = self.share.listener.as_ref().filter(|_| self.bytes > 0) {
            listener.0.give_back(self.resource, self.bytes, self.share.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Resource::{Disk, Memory};

    fn listener(all: &Arc<ClientBytes>) -> Rc<LoopAccount> {
        Rc::new(LoopAccount(ListenerBytes::new(all, None, None)))
    }

    #[test]
    fn an_address_may_hold_what_is_left_for_all_others() {
        let all = ClientBytes::new(1000, 1000);
        let listener = listener(&all);
        let one = ClientShare::new(Some(&listener), Some(1));
        let held = one.reserve(Memory, 500).unwrap();
        assert_eq!(one.reserve(Memory, 1).unwrap_err(), NoRoom(Memory));
        assert!(one.reserve(Disk, 500).is_ok());
        let two = ClientShare::new(Some(&listener), Some(2));
        let held_by_two = two.reserve(Memory, 250).unwrap();
        assert!(two.reserve(Memory, 1).is_err());
        let nobody = ClientShare::new(Some(&listener), None);
        assert!(nobody.reserve(Memory, 250).is_ok());
        assert!(nobody.reserve(Memory, 251).is_err());
        assert_eq!(all.observed(Memory), AccountFigures { held: 750, limit: 1000, refused: 3 });
        drop((held, held_by_two));
        assert_eq!(all.observed(Memory).held, 0);
        assert!(all.memory.addresses.iter().all(|shard| shard.lock().is_empty()));
    }

    #[test]
    fn a_listener_has_a_limit_of_its_own() {
        let all = ClientBytes::new(1000, 1000);
        let small = Rc::new(LoopAccount(ListenerBytes::new(&all, Some(100), None)));
        let share = ClientShare::new(Some(&small), None);
        let mut held = share.reserve(Memory, 60).unwrap();
        assert!(held.resize(101).is_err());
        assert_eq!(held.bytes(), 60);
        held.resize(100).unwrap();
        held.resize(10).unwrap();
        assert_eq!((small.0.observed(Memory).held, all.observed(Memory).held), (10, 10));
        let other = ClientShare::new(Some(&listener(&all)), None);
        assert!(other.reserve(Memory, 900).is_ok());
    }

    #[test]
    fn a_lower_limit_takes_nothing_away_and_gives_nothing_more() {
        let all = ClientBytes::new(1000, 1000);
        let listener = listener(&all);
        let share = ClientShare::new(Some(&listener), Some(1));
        let held = share.reserve(Memory, 400).unwrap();
        all.set_limits(300, 1000);
        listener.0.set_limits(None, Some(10));
        assert!(share.reserve(Memory, 1).is_err() && share.reserve(Disk, 11).is_err());
        assert_eq!(all.observed(Memory), AccountFigures { held: 400, limit: 300, refused: 1 });
        drop(held);
        assert!(share.reserve(Memory, 150).is_ok());
        all.set_limits(2000, 1000);
        listener.0.set_limits(None, None);
        assert!(share.reserve(Memory, 1000).is_ok());
    }

    #[test]
    fn the_heaviest_address_is_named_when_little_is_left() {
        let all = ClientBytes::new(1000, 1000);
        let listener = listener(&all);
        let share = |address| ClientShare::new(Some(&listener), address);
        let _heavy = share(Some(1)).reserve(Memory, 500).unwrap();
        let _light = share(Some(2)).reserve(Memory, 200).unwrap();
        assert_eq!(all.heaviest_address(), None);
        let _local = share(None).reserve(Memory, 100).unwrap();
        assert_eq!(all.heaviest_address(), Some(1));
    }

    #[test]
    fn without_a_listener_nothing_is_counted() {
        assert!(ClientShare::default().reserve(Memory, u64::MAX).is_ok());
    }
}
