//! Limits the number of connections: of the whole process, and from one client address.
//!
//! All event loops share the counts. A [`Permit`] is taken when a connection is accepted and lives
//! as long as its socket.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use kirin_http::peer::{Peer, address_key};
use parking_lot::Mutex;

/// Number of locks over the addresses. With several, two event loops rarely wait for the same lock.
const SHARDS: usize = 16;

/// The limit where addresses have none.
const NO_LIMIT: u32 = u32::MAX;

/// The open connections of the whole process.
#[derive(Debug)]
pub struct ConnectionCount {
    open: AtomicUsize,
    limit: AtomicUsize,
}

impl ConnectionCount {
    /// Returns a count that allows up to `limit` connections.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { open: AtomicUsize::new(0), limit: AtomicUsize::new(limit) })
    }

    /// Returns the most connections.
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets another limit. Connections above a lower one stay.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the number of open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

/// Admits the connections of one listener.
#[derive(Debug)]
pub struct ConnectionAdmission {
    total: Arc<ConnectionCount>,
    /// The most connections from one address. [`NO_LIMIT`] for any number.
    per_address: AtomicU32,
    addresses: [Mutex<HashMap<u64, u32>>; SHARDS],
}

/// The right to one connection. Dropping it gives the right back.
#[derive(Debug)]
pub(crate) struct Permit(Arc<ConnectionAdmission>);

/// The right to one connection from an address. Dropping it gives the right back.
#[derive(Debug)]
pub(crate) struct AddressPermit {
    admission: Arc<ConnectionAdmission>,
    address: u64,
}

/// Why the connection of a client is closed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressRefusal {
    /// The client's address already has all the connections that it may have.
    #[error("there are too many connections from this address")]
    TooMany,
    /// An operator has blocked the address.
    #[error("the address is blocked by an operator")]
    Blocked,
}

/// The client's address already has all the connections that it may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyOfAddress;

impl ConnectionAdmission {
    /// Returns the admission of one listener: its connections count in `total`, and up to
    /// `per_address` of them may come from one address.
    pub fn new(total: Arc<ConnectionCount>, per_address: Option<u32>) -> Arc<Self> {
        let per_address = AtomicU32::new(per_address.unwrap_or(NO_LIMIT));
        Arc::new(Self { total, per_address, addresses: Default::default() })
    }

    /// Sets another limit for each address. Connections above a lower one stay.
    pub fn set_limit_per_address(&self, per_address: Option<u32>) {
        self.per_address.store(per_address.unwrap_or(NO_LIMIT), Ordering::Relaxed);
    }

    /// Returns whether the process may have another connection. Event loops may find room at the
    /// same moment, so there can be one connection too many for each loop.
    pub(crate) fn has_room(&self) -> bool {
        self.total.open() < self.total.limit()
    }

    /// Counts a connection.
    pub(crate) fn admit(self: &Arc<Self>) -> Permit {
        self.total.open.fetch_add(1, Ordering::Relaxed);
        Permit(Arc::clone(self))
    }

    /// Counts a connection for the address of its client, once that is known. Returns `None` for a
    /// client without an address, and where addresses have no limit.
    pub(crate) fn admit_address(
        self: &Arc<Self>,
        peer: &Peer,
    ) -> Result<Option<AddressPermit>, TooManyOfAddress> {
        let limit = self.per_address.load(Ordering::Relaxed);
        let Some(address) = address_key(peer).filter(|_| limit != NO_LIMIT) else {
            return Ok(None);
        };
        let mut counts = self.shard(address).lock();
        let count = counts.entry(address).or_insert(0);
        if *count >= limit {
            return Err(TooManyOfAddress);
        }
        *count += 1;
        Ok(Some(AddressPermit { admission: Arc::clone(self), address }))
    }

    fn shard(&self, address: u64) -> &Mutex<HashMap<u64, u32>> {
        &self.addresses[(address ^ address >> 8 ^ address >> 32) as usize % SHARDS]
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.total.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut counts = self.admission.shard(self.address).lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::Tcp(address.parse().unwrap())
    }

    #[test]
    fn the_connections_of_one_address_are_limited() {
        let admission = ConnectionAdmission::new(ConnectionCount::new(100), Some(2));
        let first = admission.admit_address(&peer("10.0.0.1:1")).unwrap();
        let _second = admission.admit_address(&peer("10.0.0.1:2")).unwrap();
        assert_eq!(admission.admit_address(&peer("10.0.0.1:3")).err(), Some(TooManyOfAddress));
        assert_eq!(
            admission.admit_address(&peer("[::ffff:10.0.0.1]:3")).err(),
            Some(TooManyOfAddress)
        );
        let _other = admission.admit_address(&peer("10.0.0.2:1")).unwrap();
        let _unix: Vec<_> = (0..5).map(|_| admission.admit_address(&Peer::Unix).unwrap()).collect();
        drop(first);
        assert!(admission.admit_address(&peer("10.0.0.1:4")).is_ok());
    }

    #[test]
    fn ipv6_clients_are_counted_by_network() {
        let admission = ConnectionAdmission::new(ConnectionCount::new(100), Some(1));
        let _permit = admission.admit_address(&peer("[2001:db8::1]:1")).unwrap();
        assert!(admission.admit_address(&peer("[2001:db8::2]:1")).is_err());
        assert!(admission.admit_address(&peer("[2001:db8:0:1::1]:1")).is_ok());
    }

    #[test]
    fn the_connections_of_the_process_are_limited() {
        let total = ConnectionCount::new(2);
        let (one, two) = (
            ConnectionAdmission::new(Arc::clone(&total), None),
            ConnectionAdmission::new(Arc::clone(&total), None),
        );
        let permits = (one.admit(), two.admit());
        assert!(!one.has_room() && !two.has_room());
        drop(permits);
        assert!(one.has_room());
        assert_eq!(total.open(), 0);
    }

    #[test]
    fn limits_can_change() {
        let total = ConnectionCount::new(10);
        let admission = ConnectionAdmission::new(Arc::clone(&total), Some(2));
        let client = peer("10.0.0.1:1");
        let kept = (admission.admit_address(&client).unwrap(), admission.admit_address(&client));
        admission.set_limit_per_address(Some(1));
        assert!(admission.admit_address(&client).is_err());
        admission.set_limit_per_address(None);
        assert!(admission.admit_address(&client).unwrap().is_none());
        admission.set_limit_per_address(Some(3));
        assert!(admission.admit_address(&client).unwrap().is_some());
        drop(kept);
        let _open = (admission.admit(), admission.admit());
        total.set_limit(2);
        assert!(!admission.has_room());
        total.set_limit(3);
        assert!(admission.has_room());
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let admission = ConnectionAdmission::new(ConnectionCount::new(1000), Some(1));
        for last in 0..=255 {
            drop(admission.admit_address(&peer(&format!("10.0.0.{last}:1"))).unwrap());
        }
        assert!(admission.addresses.iter().all(|shard| shard.lock().is_empty()));
    }
}
