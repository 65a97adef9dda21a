//! Sets of peers: networks of addresses, and the clients of unix sockets.
//!
//! A set may be as long as the list of networks of a country. So its networks are kept as ranges
//! that are sorted and do not touch, and a search halves them: 14 steps for 10,000 networks. The
//! crates with prefix trees hold a value for each network, which a set does not have, and follow a
//! pointer for each step.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};

use crate::peer::Peer;

/// A set of peers. Two sets are equal if they have the same peers, however their networks are
/// written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerSet {
    v4: Vec<Range<u32>>,
    v6: Vec<Range<u128>>,
    /// Whether every process that can open our unix socket is in the set.
    unix: bool,
}

/// Addresses from the first to the last, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range<T> {
    first: T,
    last: T,
}

impl PeerSet {
    /// Makes the set of all addresses of `networks`, and of the clients of unix sockets if `unix`
    /// is true.
    pub fn new(networks: impl IntoIterator<Item = IpNet>, unix: bool) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in networks {
            match network {
                IpNet::V4(network) => v4.push(Range {
                    first: u32::from(network.network()),
                    last: u32::from(network.broadcast()),
                }),
                IpNet::V6(network) => v6.push(Range {
                    first: u128::from(network.network()),
                    last: u128::from(network.broadcast()),
                }),
            }
        }
        let v4 = joined(v4, |last| last.checked_add(1));
        let v6 = joined(v6, |last| last.checked_add(1));
        Self { v4, v6, unix }
    }

    /// Returns whether `peer` is in the set.
    pub fn contains(&self, peer: &Peer) -> bool {
        match peer {
            Peer::Unix => self.unix,
            Peer::Tcp(address) => self.contains_ip(address.ip()),
        }
    }

    /// Returns whether the address is in the set. An IPv4 address in the form of IPv6 counts as
    /// IPv4.
    pub fn contains_ip(&self, ip: IpAddr) -> bool {
        match ip.to_canonical() {
            IpAddr::V4(ip) => is_in(&self.v4, u32::from(ip)),
            IpAddr::V6(ip) => is_in(&self.v6, u128::from(ip)),
        }
    }

    /// Returns whether nobody is in the set.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && !self.unix
    }

    /// Returns the fewest networks that have these addresses, in order, and `unix:` at the end.
    pub fn names(&self) -> Vec<String> {
        let v4 = self
            .v4
            .iter()
            .flat_map(|range| Ipv4Subnets::new(range.first.into(), range.last.into(), 0));
        let v6 = self
            .v6
            .iter()
            .flat_map(|range| Ipv6Subnets::new(range.first.into(), range.last.into(), 0));
        let networks =
            v4.map(IpNet::V4).chain(v6.map(IpNet::V6)).map(|network| network.to_string());
        networks.chain(self.unix.then(|| "unix:".to_owned())).collect()
    }

    /// Returns bytes that are the same for equal sets, and only for them.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.unix)];
        bytes.extend_from_slice(&(self.v4.len() as u64).to_be_bytes());
        for range in &self.v4 {
            bytes.extend_from_slice(&range.first.to_be_bytes());
            bytes.extend_from_slice(&range.last.to_be_bytes());
        }
        for range in &self.v6 {
            bytes.extend_from_slice(&range.first.to_be_bytes());
            bytes.extend_from_slice(&range.last.to_be_bytes());
        }
        bytes
    }
}

/// Returns the ranges sorted, with those joined that overlap or touch.
fn joined<T: Copy + Ord>(
    mut ranges: Vec<Range<T>>,
    successor: impl Fn(T) -> Option<T>,
) -> Vec<Range<T>> {
    ranges.sort_unstable_by_key(|range| range.first);
    let mut joined: Vec<Range<T>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            // The last address of all has no successor. Nothing can begin behind it.
            Some(before) if successor(before.last).is_none_or(|next| range.first <= next) => {
                before.last = before.last.max(range.last);
            }
            _ => joined.push(range),
        }
    }
    joined.shrink_to_fit();
    joined
}

fn is_in<T: Copy + Ord>(ranges: &[Range<T>], address: T) -> bool {
    let begun = ranges.partition_point(|range| range.first <= address);
    begun > 0 && address <= ranges[begun - 1].last
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(networks: &[&str], unix: bool) -> PeerSet {
        PeerSet::new(networks.iter().map(|network| network.parse::<IpNet>().unwrap()), unix)
    }

    #[test]
    fn a_set_has_the_addresses_of_its_networks_and_no_others() {
        let everybody = ["0.0.0.0/0", "::/0"];
        for (networks, address, expected) in [
            (&["10.0.0.0/8"][..], "10.0.0.0", true),
            (&["10.0.0.0/8"], "10.255.255.255", true),
            (&["10.0.0.0/8"], "11.0.0.0", false),
            (&["10.0.0.0/8"], "9.255.255.255", false),
            (&["10.0.0.0/8"], "::ffff:10.1.2.3", true),
            (&["10.0.0.0/8"], "::10.1.2.3", false),
            (&["192.0.2.1/32"], "192.0.2.1", true),
            (&["192.0.2.1/32"], "192.0.2.0", false),
            (&["192.0.2.1/32"], "192.0.2.2", false),
            (&["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8"], "10.200.0.1", true),
            (&["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8"], "11.255.0.1", true),
            (&["2001:db8::/32"], "2001:db8:ffff::1", true),
            (&["2001:db8::/32"], "2001:db9::", false),
            (&["2001:db8::/32"], "1.2.3.4", false),
            (&everybody, "0.0.0.0", true),
            (&everybody, "255.255.255.255", true),
            (&everybody, "::", true),
            (&everybody, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true),
            (&[], "127.0.0.1", false),
        ] {
            let found = set(networks, false).contains_ip(address.parse().unwrap());
            assert_eq!(found, expected, "{networks:?} {address}");
        }
    }

    #[test]
    fn clients_of_unix_sockets_are_in_a_set_only_if_it_says_so() {
        assert!(set(&[], true).contains(&Peer::Unix) && !set(&[], true).is_empty());
        assert!(!set(&["0.0.0.0/0", "::/0"], false).contains(&Peer::Unix));
        assert!(set(&[], false).is_empty());
    }

    #[test]
    fn sets_are_equal_however_their_networks_are_written() {
        let one = set(&["10.0.0.0/8", "2001:db8::/32"], true);
        let other = set(&["2001:db8::/32", "10.128.0.0/9", "10.0.0.0/9", "10.3.0.0/16"], true);
        assert_eq!(one, other);
        assert_eq!(one.canonical_bytes(), other.canonical_bytes());
        for different in [
            set(&["10.0.0.0/8", "2001:db8::/32"], false),
            set(&["10.0.0.0/9", "2001:db8::/32"], true),
            set(&["10.0.0.0/8"], true),
            set(&[], true),
        ] {
            assert_ne!(one.canonical_bytes(), different.canonical_bytes(), "{different:?}");
        }
    }

    proptest! {
        #[test]
        fn a_set_agrees_with_a_search_of_all_networks(
            networks in proptest::collection::vec((any::<u32>(), 4_u8..=32), 0..40),
            wide in proptest::collection::vec((any::<u128>(), 3_u8..=128), 0..20),
            address: u32,
            wide_address: u128,
        ) {
            let v4 = networks.iter().map(|(address, bits)| {
                IpNet::new(IpAddr::V4((*address).into()), *bits).unwrap().trunc()
            });
            let v6 = wide.iter().map(|(address, bits)| {
                IpNet::new(IpAddr::V6((*address).into()), *bits).unwrap().trunc()
            });
            let all: Vec<IpNet> = v4.chain(v6).collect();
            let set = PeerSet::new(all.iter().copied(), false);
            // Addresses at both ends of each network are the hard ones.
            let ends = all.iter().flat_map(|network| [network.network(), network.broadcast()]);
            let beside = networks.iter().map(|(address, _)| IpAddr::V4((*address ^ 1).into()));
            let random = [IpAddr::V4(address.into()), IpAddr::V6(wide_address.into())];
            for ip in ends.chain(beside).chain(random).map(|ip: IpAddr| ip.to_canonical()) {
                let expected = all.iter().any(|network| network.contains(&ip));
                prop_assert_eq!(set.contains_ip(ip), expected, "{:?} {}", all, ip);
            }
        }
    }
}
