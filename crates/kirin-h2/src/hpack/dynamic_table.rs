//! The dynamic table (RFC 7541, section 2.3.2). Both sides of a connection have one for each
//! direction.
//!
//! The octets of all entries are in one buffer, the oldest ones first. New entries are appended.
//! Evicted entries leave a gap at the start, which is closed when the buffer is full. The buffer
//! may be a quarter larger than the table, so this happens at most once for each quarter of new
//! octets.

use std::collections::VecDeque;

use super::known::Known;

/// The octets that each entry counts besides its name and its value.
pub(super) const ENTRY_OVERHEAD: u32 = 32;

/// The least capacity of the buffer, in octets.
const LEAST_CAPACITY: usize = 128;

/// The facts about a field besides its octets.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldFacts {
    /// The size of the field as an entry of a table (RFC 7541, section 4.1): the lengths of its
    /// name and its value, and 32.
    pub(super) entry_size: u32,
    /// The length of the value in octets.
    pub(super) value_length: u32,
    /// The index of the name in the static table, which has the octets of the name then. 0: the
    /// octets of the name are stored before those of the value.
    pub(super) name_index: u8,
    /// The rule for the name.
    pub(super) known: Known,
    /// Whether the name is allowed.
    pub(super) is_name_valid: bool,
    /// Whether the name and the value are allowed.
    pub(super) is_valid: bool,
}

impl FieldFacts {
    /// Returns the number of stored octets of the name.
    #[inline]
    pub(super) fn stored_name_length(&self) -> usize {
        if self.name_index == 0 {
            self.entry_size.wrapping_sub(self.value_length).wrapping_sub(ENTRY_OVERHEAD) as usize
        } else {
            0
        }
    }

    /// Returns the number of stored octets of name and value.
    #[inline]
    pub(super) fn stored_length(&self) -> usize {
        let length = if self.name_index == 0 {
            self.entry_size.wrapping_sub(ENTRY_OVERHEAD)
        } else {
            self.value_length
        };
        length as usize
    }
}

/// An entry and the place of its octets.
#[derive(Clone, Copy, Debug)]
struct Slot {
    facts: FieldFacts,
    /// The number of octets that were ever appended before this entry, modulo 2³².
    start: u32,
}

/// An entry of a table.
pub(super) struct TableEntry<'a> {
    pub(super) facts: &'a FieldFacts,
    /// The stored octets: the name, unless it is in the static table, then the value.
    pub(super) octets: &'a [u8],
}

impl<'a> TableEntry<'a> {
    /// Returns the name, or nothing if the static table has it.
    pub(super) fn stored_name(&self) -> &'a [u8] {
        self.octets.get(..self.facts.stored_name_length()).unwrap_or_default()
    }

    /// Returns the value.
    #[inline]
    pub(super) fn value(&self) -> &'a [u8] {
        self.octets.get(self.facts.stored_name_length()..).unwrap_or_default()
    }
}

/// The entries of a dynamic table.
#[derive(Debug)]
pub(super) struct DynamicTable {
    octets: Vec<u8>,
    /// The number of octets that were ever removed from the start of `octets`, modulo 2³².
    removed: u32,
    /// The entries, the newest one first.
    slots: VecDeque<Slot>,
    /// The size of all entries together.
    size: u32,
    /// The largest allowed `size`.
    limit: u32,
}

impl DynamicTable {
    /// Creates an empty table.
    pub(super) fn new(limit: u32) -> Self {
        Self { octets: Vec::new(), removed: 0, slots: VecDeque::new(), size: 0, limit }
    }

    /// Returns the largest size of the table.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the capacity of the memory in octets.
    pub(super) fn held_bytes(&self) -> usize {
        self.octets.capacity() + self.slots.capacity() * size_of::<Slot>()
    }

    /// Returns an entry. The newest one has the number 0.
    #[inline]
    pub(super) fn get(&self, number: usize) -> Option<TableEntry<'_>> {
        let slot = self.slots.get(number)?;
        let start = self.place(slot);
        let octets = self.octets.get(start..)?.get(..slot.facts.stored_length())?;
        Some(TableEntry { facts: &slot.facts, octets })
    }

    /// Changes the largest size, evicts what is too much, and gives memory back.
    pub(super) fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
        self.evict_down_to(limit);
        if limit == 0 {
            *self = Self::new(0);
        } else if self.octets.capacity() > self.most_capacity() {
            self.close_gap();
            self.octets.shrink_to(self.most_capacity());
            self.slots.shrink_to_fit();
        }
    }

    /// Adds an entry and evicts the oldest ones that have no room any more. `name` is empty if the
    /// static table has the name. An entry that is larger than the table only evicts all others.
    pub(super) fn insert(&mut self, facts: FieldFacts, name: &[u8], value: &[u8]) {
        let size = facts.entry_size;
        if size > self.limit {
            self.evict_down_to(0);
            return;
        }
        self.evict_down_to(self.limit - size);
        let length = name.len() + value.len();
        if self.octets.capacity() - self.octets.len() < length {
            self.make_room(length);
        }
        let start = self.removed.wrapping_add(self.octets.len() as u32);
        self.octets.extend_from_slice(name);
        self.octets.extend_from_slice(value);
        self.slots.push_front(Slot { facts, start });
        self.size += size;
    }

    #[inline]
    fn evict_down_to(&mut self, size: u32) {
        while self.size > size {
            let Some(slot) = self.slots.pop_back() else { break };
            self.size -= slot.facts.entry_size;
        }
    }

    /// Returns the place of an entry in `octets`.
    #[inline]
    fn place(&self, slot: &Slot) -> usize {
        slot.start.wrapping_sub(self.removed) as usize
    }

    /// Returns the largest useful capacity of `octets`.
    fn most_capacity(&self) -> usize {
        self.limit as usize + self.limit as usize / 4
    }

    /// Closes the gap, or lets `octets` grow if the gap is small.
    #[inline(never)]
    fn make_room(&mut self, length: usize) {
        let gap = self.close_gap();
        let capacity = self.octets.capacity();
        let needed = self.octets.len() + length;
        if needed > capacity || gap < capacity / 5 {
            let wanted =
                (capacity * 2).clamp(LEAST_CAPACITY, self.most_capacity().max(LEAST_CAPACITY));
            self.octets.reserve_exact(wanted.max(needed) - self.octets.len());
        }
    }

    /// Removes the octets of evicted entries, and returns their number.
    fn close_gap(&mut self) -> usize {
        let gap = self.slots.back().map_or(self.octets.len(), |slot| self.place(slot));
        self.octets.drain(..gap);
        self.removed = self.removed.wrapping_add(gap as u32);
        gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str, value: &str) -> FieldFacts {
        FieldFacts {
            entry_size: (name.len() + value.len()) as u32 + ENTRY_OVERHEAD,
            value_length: value.len() as u32,
            name_index: 0,
            known: Known::Other,
            is_name_valid: true,
            is_valid: true,
        }
    }

    fn insert(table: &mut DynamicTable, name: &str, value: &str) {
        table.insert(facts(name, value), name.as_bytes(), value.as_bytes());
    }

    #[test]
    fn an_empty_table_holds_no_memory() {
        let mut table = DynamicTable::new(4096);
        assert_eq!(table.held_bytes(), 0);
        insert(&mut table, "name", "value");
        assert!(table.held_bytes() <= 256, "{}", table.held_bytes());
        table.set_limit(0);
        assert_eq!((table.held_bytes(), table.len()), (0, 0));
    }

    #[test]
    fn the_table_has_the_newest_entries_that_fit() {
        for limit in [0, 32, 45, 100, 500, 4096] {
            let mut table = DynamicTable::new(limit);
            let mut expected: Vec<(String, String)> = Vec::new();
            for number in 0..3000usize {
                let (name, value) = (format!("n{number}"), "v".repeat(number * 7 % 60));
                insert(&mut table, &name, &value);
                expected.insert(0, (name, value));
                let size = |field: &(String, String)| field.0.len() + field.1.len() + 32;
                while expected.iter().map(size).sum::<usize>() > limit as usize {
                    expected.pop();
                }
                assert_eq!(table.len(), expected.len());
                for (place, field) in expected.iter().enumerate() {
                    let entry = table.get(place).expect("the entry");
                    assert_eq!(
                        (entry.stored_name(), entry.value()),
                        (field.0.as_bytes(), field.1.as_bytes())
                    );
                }
                assert!(table.get(expected.len()).is_none());
            }
            assert!(table.octets.capacity() <= 128.max(limit as usize * 5 / 4));
        }
    }

    #[test]
    fn an_entry_that_is_too_large_evicts_all_others() {
        let mut table = DynamicTable::new(100);
        insert(&mut table, "a", "b");
        insert(&mut table, "a", &"b".repeat(68));
        assert_eq!((table.len(), table.size), (0, 0));
    }

    #[test]
    fn a_smaller_limit_gives_memory_back() {
        let mut table = DynamicTable::new(4096);
        for number in 0..100 {
            insert(&mut table, &format!("name-{number}"), "a value of some length");
        }
        let held = table.held_bytes();
        table.set_limit(200);
        assert!(table.held_bytes() < held / 4, "{held} {}", table.held_bytes());
        assert_eq!(table.get(0).expect("the entry").stored_name(), b"name-99");
    }

    #[test]
    fn offsets_survive_the_end_of_their_32_bits() {
        let mut table = DynamicTable::new(300);
        table.removed = u32::MAX - 150;
        for number in 0..50 {
            let name = format!("name-{number}");
            insert(&mut table, &name, "value");
            assert_eq!(table.get(0).expect("the entry").stored_name(), name.as_bytes());
            assert_eq!(table.get(table.len() - 1).expect("the entry").value(), b"value");
        }
    }
}
