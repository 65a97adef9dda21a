//! The slots of a cluster: which of its masters has a name.
//!
//! A name is in the slot CRC16(name) mod 16384. If it has a `{` and a `}` behind that, only what is
//! between the first of them counts, unless that is empty. `CLUSTER SLOTS` tells which master has
//! which slots.

use redis::Value;

use crate::address::NodeAddress;
use crate::replies::{text, unexpected};

/// The number of slots.
const SLOTS: u16 = 16384;

/// The masters of a cluster and their slots. Each slot has a master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlotMap {
    /// The masters.
    pub(crate) masters: Vec<ClusterMaster>,
    /// In their order, without gaps.
    pub(crate) ranges: Vec<SlotRange>,
}

/// A master of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterMaster {
    /// The name that the cluster has for it.
    pub(crate) id: String,
    pub(crate) node: NodeAddress,
}

/// Slots that follow each other and have the same master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRange {
    first: u16,
    last: u16,
    /// The index of the master.
    master: usize,
}

impl SlotMap {
    /// Parses the reply of a node to `CLUSTER SLOTS`. `asked` is the node: a cluster may not know
    /// by which address others reach it. Returns what is wrong if a slot has no master.
    pub(crate) fn parse(reply: &Value, asked: &NodeAddress) -> Result<Self, String> {
        let Value::Array(rows) = reply else {
            return Err(unexpected("CLUSTER SLOTS", reply).to_string());
        };
        let rows = rows.iter().map(|row| {
            row_of(row, asked).ok_or_else(|| unexpected("CLUSTER SLOTS", row).to_string())
        });
        let mut rows = rows.collect::<Result<Vec<_>, String>>()?;
        rows.sort_unstable_by_key(|(first, ..)| *first);
        let mut map = Self { masters: Vec::new(), ranges: Vec::new() };
        let mut next = 0;
        for (first, last, found) in rows {
            if first != next || last < first || last >= SLOTS {
                break;
            }
            next = last + 1;
            let known = map.masters.iter().position(|master| master.id == found.id);
            let master = known.unwrap_or(map.masters.len());
            if known.is_none() {
                map.masters.push(found);
            }
            match map.ranges.last_mut() {
                Some(before) if before.master == master => before.last = last,
                _ => map.ranges.push(SlotRange { first, last, master }),
            }
        }
        if next < SLOTS { Err(format!("slot {next} has no master")) } else { Ok(map) }
    }

    /// Returns the index of the master that has a name.
    pub(crate) fn master_of(&self, name: &[u8]) -> usize {
        let slot = slot_of(name);
        let at = self.ranges.partition_point(|range| range.last < slot);
        self.ranges.get(at).map_or(0, |range| range.master)
    }

    /// Gives the index 0 to the master that has a name.
    pub(crate) fn beginning_with(mut self, name: &[u8]) -> Self {
        let first = self.master_of(name);
        self.masters.swap(0, first);
        for range in &mut self.ranges {
            range.master = match range.master {
                0 => first,
                master if master == first => 0,
                master => master,
            };
        }
        self
    }

    /// Returns whether each slot has the same master as in another map. Nodes may know the masters
    /// by other addresses, and count them in another order.
    pub(crate) fn has_masters_of(&self, other: &Self) -> bool {
        let masters = |map: &Self| -> Vec<(u16, Option<String>)> {
            let master = |range: &SlotRange| map.masters.get(range.master);
            let id = |range: &SlotRange| master(range).map(|master| master.id.clone());
            map.ranges.iter().map(|range| (range.last, id(range))).collect()
        };
        masters(self) == masters(other)
    }
}

/// Returns the slots of a row and their master.
fn row_of(row: &Value, asked: &NodeAddress) -> Option<(u16, u16, ClusterMaster)> {
    let Value::Array(row) = row else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = row.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), id, ..] = master.as_slice() else { return None };
    let host = match text(host) {
        host if host.is_empty() => asked.host.clone(),
        // The cluster is to tell names, and this node has none.
        host if host == "?" => return None,
        host => host.to_ascii_lowercase(),
    };
    let port = u16::try_from(*port).ok()?;
    let master = ClusterMaster { id: text(id), node: NodeAddress { host, port } };
    Some((u16::try_from(*first).ok()?, u16::try_from(*last).ok()?, master))
}

/// Returns the slot of a name.
pub(crate) fn slot_of(name: &[u8]) -> u16 {
    crc16(hash_tag(name).unwrap_or(name)) % SLOTS
}

/// Returns what is between the first braces, if that is anything.
fn hash_tag(name: &[u8]) -> Option<&[u8]> {
    let begin = name.iter().position(|byte| *byte == b'{')?;
    let rest = name.get(begin + 1..)?;
    let end = rest.iter().position(|byte| *byte == b'}')?;
    rest.get(..end).filter(|tag| !tag.is_empty())
}

/// Returns the CRC16 of the cluster specification (XMODEM: polynomial 0x1021, begin 0).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, byte| {
        let sum = sum ^ (u16::from(*byte) << 8);
        (0..8).fold(sum, |sum, _| if sum & 0x8000 == 0 { sum << 1 } else { (sum << 1) ^ 0x1021 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn row(first: i64, last: i64, host: Value, id: &str) -> Value {
        let master = Value::Array(vec![host, Value::Int(7000), bulk(id), Value::Array(vec![])]);
        let replica = Value::Array(vec![bulk("r"), Value::Int(7001), bulk("replica")]);
        Value::Array(vec![Value::Int(first), Value::Int(last), master, replica])
    }

    fn parse(rows: Vec<Value>) -> Result<SlotMap, String> {
        let asked = NodeAddress { host: "asked".into(), port: 1 };
        SlotMap::parse(&Value::Array(rows), &asked)
    }

    #[test]
    fn names_have_the_slots_of_the_specification() {
        // What `CLUSTER KEYSLOT` answers.
        for (name, slot) in [
            ("123456789", 0x31c3),
            ("foo", 12182),
            ("{foo}bar", 12182),
            ("a{foo}{bar}", 12182),
            ("", 0),
        ] {
            assert_eq!(slot_of(name.as_bytes()), slot, "{name}");
        }
        assert_ne!(slot_of(b"{}foo"), slot_of(b"{}bar"), "an empty tag is none");
        let names = Names::default();
        assert_eq!(slot_of(names.number()), slot_of(names.purges()));
    }

    #[test]
    fn each_slot_leads_to_its_master() {
        let rows = vec![
            row(12000, 16383, bulk("A"), "a"),
            row(0, 4999, Value::Nil, "b"),
            row(5000, 11999, bulk("a"), "a"),
        ];
        let map = parse(rows).expect("a map");
        let hosts: Vec<&str> = map.masters.iter().map(|master| &*master.node.host).collect();
        assert_eq!(hosts, ["asked", "a"]);
        assert_eq!(map.ranges.len(), 2);
        assert_eq!((map.master_of(b""), map.master_of(b"foo")), (0, 1));
        let turned = map.clone().beginning_with(b"foo");
        assert_eq!((turned.master_of(b""), turned.master_of(b"foo")), (1, 0));
        assert_eq!(turned.masters[0].id, "a");
        assert!(turned.has_masters_of(&map));
        let other = parse(vec![row(0, 5000, bulk("b"), "b"), row(5001, 16383, bulk("a"), "a")]);
        assert!(!other.expect("a map").has_masters_of(&map));
    }

    #[test]
    fn a_map_with_a_gap_is_none() {
        for (rows, reason) in [
            (vec![], "slot 0 has no master"),
            (vec![row(1, 16383, bulk("a"), "a")], "slot 0 has no master"),
            (vec![row(0, 9, bulk("a"), "a"), row(11, 16383, bulk("b"), "b")], "slot 10 has"),
            (vec![row(0, 16384, bulk("a"), "a")], "slot 0 has no master"),
            (vec![row(0, 16383, bulk("?"), "a")], "CLUSTER SLOTS"),
            (vec![Value::Int(1)], "CLUSTER SLOTS"),
        ] {
            let error = parse(rows).expect_err(reason);
            assert!(error.contains(reason), "{error}");
        }
    }
}
