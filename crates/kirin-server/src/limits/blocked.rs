//! The addresses that an operator has blocked for a time.
//!
//! All listeners and event loops share them. While nobody is blocked, a look costs one load. A
//! block is counted by the monotonic clock, so nobody prolongs it by setting the time.
//!
//! There are two lists: the blocks of this machine, and those that hold on all machines with the
//! same origin. A network may be in both.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use kirin_http::{Peer, PeerSet};
use parking_lot::RwLock;

/// The most networks of a list that are blocked at the same time. Each takes 32 bytes.
pub const MAX_BLOCKS: usize = 10_000;

/// The addresses that are blocked.
#[derive(Debug, Default)]
pub struct BlockedAddresses {
    /// Whether there may be blocks.
    is_used: AtomicBool,
    blocks: RwLock<Blocks>,
}

#[derive(Debug, Default)]
struct Blocks {
    /// The blocks of this machine, in the order of their networks.
    own: Vec<Block>,
    /// Those of all machines, in the same order.
    shared: Vec<Block>,
    /// Whether the origin has told those of all machines.
    are_told: bool,
    /// The addresses of all of them.
    addresses: PeerSet,
    /// When the first of them ends.
    first_end: Option<Instant>,
}

/// A network that is blocked for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The network. That of a single address has no other.
    pub network: IpNet,
    /// When the block ends.
    pub end: Instant,
}

/// There are as many blocks as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_BLOCKS} networks are blocked already, which is the limit")]
pub struct TooManyBlocks;

impl BlockedAddresses {
    /// Blocks a network on this machine from `now` on, for `time`. It replaces a block of the same
    /// network.
    pub fn block(&self, network: IpNet, time: Duration, now: Instant) -> Result<(), TooManyBlocks> {
        self.block_all([Block { network, end: now + time }], now)
    }

    /// Does the same with many networks. If there are too many, the last are not blocked.
    pub fn block_all(
        &self,
        new: impl IntoIterator<Item = Block>,
        now: Instant,
    ) -> Result<(), TooManyBlocks> {
        let mut blocks = self.blocks.write();
        let of_network = |block: Block| (block.network, block);
        let present = blocks.own.drain(..).filter(|block| block.end > now);
        let mut all: BTreeMap<IpNet, Block> = present.map(of_network).collect();
        let mut is_full = false;
        for block in new {
            is_full |= all.len() >= MAX_BLOCKS && !all.contains_key(&block.network);
            if !is_full {
                all.insert(block.network, block);
            }
        }
        blocks.own = all.into_values().collect();
        self.changed(&mut blocks);
        if is_full { Err(TooManyBlocks) } else { Ok(()) }
    }

    /// Ends the block of exactly this network on this machine. Returns whether there was one.
    pub fn unblock(&self, network: IpNet, now: Instant) -> bool {
        let mut blocks = self.blocks.write();
        blocks.own.retain(|block| block.end > now);
        let before = blocks.own.len();
        blocks.own.retain(|block| block.network != network);
        let is_ended = blocks.own.len() < before;
        self.changed(&mut blocks);
        is_ended
    }

    /// Replaces the blocks of all machines by those that the origin has: at most [`MAX_BLOCKS`], in
    /// the order of their networks.
    pub fn replace_shared(&self, shared: Vec<Block>) {
        let mut blocks = self.blocks.write();
        (blocks.shared, blocks.are_told) = (shared, true);
        self.changed(&mut blocks);
    }

    /// Does the same with those that another program knew, unless the origin has told them.
    pub fn take_over_shared(&self, shared: Vec<Block>) {
        let mut blocks = self.blocks.write();
        if !blocks.are_told {
            blocks.shared = shared;
            self.changed(&mut blocks);
        }
    }

    /// Returns the blocks of this machine, in the order of their networks.
    pub fn list(&self, now: Instant) -> Vec<Block> {
        present(&self.blocks.read().own, now)
    }

    /// Returns the blocks of all machines, in the same order.
    pub fn list_shared(&self, now: Instant) -> Vec<Block> {
        present(&self.blocks.read().shared, now)
    }

    /// Returns whether `peer` is blocked now.
    #[inline]
    pub fn has(&self, peer: &Peer) -> bool {
        self.is_used.load(Ordering::Relaxed) && self.has_at(peer, Instant::now())
    }

    #[cold]
    fn has_at(&self, peer: &Peer, now: Instant) -> bool {
        let blocks = self.blocks.read();
        if blocks.first_end.is_none_or(|end| now < end) {
            return blocks.addresses.contains(peer);
        }
        drop(blocks);
        let mut blocks = self.blocks.write();
        blocks.own.retain(|block| block.end > now);
        blocks.shared.retain(|block| block.end > now);
        self.changed(&mut blocks);
        blocks.addresses.contains(peer)
    }

    fn changed(&self, blocks: &mut Blocks) {
        let Blocks { own, shared, addresses, first_end, .. } = blocks;
        let all = || own.iter().chain(shared.iter());
        *addresses = PeerSet::new(all().map(|block| block.network), false);
        *first_end = all().map(|block| block.end).min();
        self.is_used.store(first_end.is_some(), Ordering::Relaxed);
    }
}

fn present(blocks: &[Block], now: Instant) -> Vec<Block> {
    blocks.iter().filter(|block| block.end > now).copied().collect()
}

/// Returns the name of a network. That of a single address is the address.
pub fn network_name(network: IpNet) -> String {
    match network.prefix_len() == network.max_prefix_len() {
        true => network.addr().to_string(),
        false => network.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn network(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn peer(address: &str) -> Peer {
        Peer::Tcp((address.parse::<std::net::IpAddr>().unwrap(), 1).into())
    }

    #[test]
    fn a_block_ends_by_itself() {
        let (blocked, start) = (BlockedAddresses::default(), Instant::now());
        assert!(!blocked.has(&peer("192.0.2.7")));
        blocked.block(network("192.0.2.7/32"), MINUTE, start).unwrap();
        blocked.block(network("2001:db8::/32"), 2 * MINUTE, start).unwrap();
        for (address, is_blocked) in [
            ("192.0.2.7", true),
            ("::ffff:192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8::1", true),
        ] {
            assert_eq!(blocked.has(&peer(address)), is_blocked, "{address}");
        }
        assert!(!blocked.has(&Peer::Unix));
        let before_end = start + MINUTE - Duration::from_millis(1);
        assert!(blocked.has_at(&peer("192.0.2.7"), before_end));
        assert!(!blocked.has_at(&peer("192.0.2.7"), start + MINUTE));
        assert!(blocked.has_at(&peer("2001:db8::1"), start + MINUTE));
        assert_eq!(blocked.list(start + MINUTE).len(), 1);
        assert!(!blocked.has_at(&peer("2001:db8::1"), start + 2 * MINUTE));
        assert!(!blocked.is_used.load(Ordering::Relaxed), "a look costs one load again");
    }

    #[test]
    fn a_block_within_another_is_one_of_its_own() {
        let (blocked, start) = (BlockedAddresses::default(), Instant::now());
        blocked.block(network("10.0.0.0/8"), MINUTE, start).unwrap();
        blocked.block(network("10.1.2.3/32"), 9 * MINUTE, start).unwrap();
        assert!(!blocked.unblock(network("10.0.0.0/9"), start));
        assert!(blocked.unblock(network("10.0.0.0/8"), start));
        assert!(blocked.has(&peer("10.1.2.3")) && !blocked.has(&peer("10.1.2.4")));
        // Another time for the same network.
        blocked.block(network("10.1.2.3/32"), MINUTE, start).unwrap();
        let block = Block { network: network("10.1.2.3/32"), end: start + MINUTE };
        assert_eq!(blocked.list(start), [block]);
        assert!(!blocked.unblock(network("10.1.2.3/32"), start + MINUTE), "it has ended");
    }

    #[test]
    fn blocks_of_all_machines_are_a_list_of_their_own() {
        let (blocked, start) = (BlockedAddresses::default(), Instant::now());
        let block = |text: &str, minutes: u32| Block {
            network: network(text),
            end: start + minutes * MINUTE,
        };
        let (a, b) = (block("10.0.0.0/8", 2), block("192.0.2.7/32", 1));
        blocked.take_over_shared(vec![a]);
        assert!(blocked.has(&peer("10.1.2.3")));
        blocked.replace_shared(vec![a, b]);
        blocked.take_over_shared(vec![]);
        blocked.block(b.network, 3 * MINUTE, start).unwrap();
        assert_eq!(blocked.list(start), [block("192.0.2.7/32", 3)]);
        assert_eq!(blocked.list_shared(start), [a, b]);
        assert!(!blocked.unblock(a.network, start), "it is no block of this machine");
        assert!(blocked.has_at(&peer("192.0.2.7"), start + MINUTE));
        assert_eq!(blocked.list_shared(start + MINUTE), [a]);
        assert!(!blocked.has_at(&peer("10.1.2.3"), start + 2 * MINUTE));
        blocked.replace_shared(vec![a]);
        assert_eq!(blocked.list(start), [block("192.0.2.7/32", 3)]);
        assert!(blocked.unblock(b.network, start) && !blocked.has(&peer("192.0.2.7")));
        blocked.replace_shared(vec![]);
        assert!(!blocked.is_used.load(Ordering::Relaxed), "a look costs one load again");
    }

    #[test]
    fn the_number_of_blocks_is_limited() {
        let (blocked, start) = (BlockedAddresses::default(), Instant::now());
        let address = |number: usize| {
            IpNet::from(std::net::IpAddr::V4(std::net::Ipv4Addr::from_bits(number as u32)))
        };
        let mut blocks = blocked.blocks.write();
        blocks.own = (0..MAX_BLOCKS)
            .map(|number| Block { network: address(number), end: start + MINUTE })
            .collect();
        drop(blocks);
        assert_eq!(blocked.block(address(MAX_BLOCKS), MINUTE, start), Err(TooManyBlocks));
        blocked.block(address(7), MINUTE, start).unwrap();
        // When the others have ended, there is room.
        blocked.block(address(MAX_BLOCKS), MINUTE, start + MINUTE).unwrap();
        assert_eq!(blocked.list(start + MINUTE).len(), 1);
    }
}
