//! A decoded header list in memory that is used again and again.

use super::{
    dynamic_table::{ENTRY_OVERHEAD, FieldFacts, TableEntry},
    known::Known,
    static_table,
    validity::{is_valid_name, is_valid_value},
};

/// The least size to which the memory grows, in octets.
const LEAST_CAPACITY: usize = 1024;

/// The largest number of octets that a list can have, whatever its limit is.
const MOST_OCTETS: usize = 1 << 30;

/// A field of a decoded header list.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The name as the peer sent it.
    pub name: &'a [u8],
    /// The value as the peer sent it.
    pub value: &'a [u8],
    /// The rule for the name.
    pub known: Known,
    /// Whether RFC 9113, section 8.2.1, allows the name and the value.
    pub is_valid: bool,
}

impl<'a> Field<'a> {
    /// Returns the name as text, or "" if it is not UTF-8. Each valid name is.
    pub fn name_str(&self) -> &'a str {
        std::str::from_utf8(self.name).unwrap_or("")
    }
}

/// A decoded header list in memory that is used again and again.
#[derive(Default, Debug)]
pub struct FieldBuffer {
    /// The octets of the kept fields, and initialized memory behind them.
    octets: Vec<u8>,
    /// The number of octets of the kept fields.
    used: usize,
    entries: Vec<Entry>,
    list_bytes: usize,
    is_too_large: bool,
}

/// A kept field.
#[derive(Clone, Copy, Debug)]
struct Entry {
    facts: FieldFacts,
    /// The place of the stored octets, or [`STATIC_VALUE`].
    start: u32,
}

/// Stands for the place of octets if the value is that of the static entry too.
const STATIC_VALUE: u32 = u32::MAX;

/// The limits of a list.
#[derive(Clone, Copy)]
pub(super) struct ListLimits {
    /// The largest size of the list as RFC 9113, section 6.5.2, counts it.
    pub(super) bytes: usize,
    /// The largest number of fields.
    pub(super) fields: usize,
}

impl FieldBuffer {
    /// Returns the limits that apply to the next fields. A list that is too large stays so.
    pub(super) fn limits(&self, bytes: usize, fields: usize) -> ListLimits {
        let bytes = if self.is_too_large { 0 } else { bytes.min(MOST_OCTETS) };
        ListLimits { bytes, fields }
    }

    /// Removes the fields and keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.entries.clear();
        self.list_bytes = 0;
        self.is_too_large = false;
    }

    /// Returns the kept fields in the order of the block.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.entries.iter().map(|entry| self.field(entry))
    }

    /// Returns the number of kept fields.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no kept fields.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether fields were left out because the list is longer than its limit.
    pub fn is_too_large(&self) -> bool {
        self.is_too_large
    }

    /// Returns the size of the list: each field counts its name, its value and 32 octets (RFC 9113,
    /// section 6.5.2). Fields that were left out count too.
    pub fn list_bytes(&self) -> usize {
        self.list_bytes
    }

    #[inline]
    fn field(&self, entry: &Entry) -> Field<'_> {
        let FieldFacts { known, is_valid, name_index, .. } = entry.facts;
        if name_index == 0 {
            let octets = self.stored(entry);
            let (name, value) =
                octets.split_at_checked(entry.facts.stored_name_length()).unwrap_or_default();
            return Field { name, value, known, is_valid };
        }
        let fixed = static_table::entry(name_index);
        let value = if entry.start == STATIC_VALUE { fixed.value } else { self.stored(entry) };
        Field { name: fixed.name, value, known, is_valid }
    }

    #[inline]
    fn stored(&self, entry: &Entry) -> &[u8] {
        let start = entry.start as usize;
        let octets = self.octets.get(start..).unwrap_or_default();
        octets.get(..entry.facts.stored_length()).unwrap_or_default()
    }

    /// Adds a field that another compression than HPACK has decoded. It is not kept if the list is
    /// longer than `most_bytes` or has more than `most_fields` fields then, and
    /// [`FieldBuffer::is_too_large`] says so.
    pub fn push(&mut self, name: &[u8], value: &[u8], most_bytes: usize, most_fields: usize) {
        let limits = self.limits(most_bytes, most_fields);
        let length = |octets: &[u8]| u32::try_from(octets.len()).unwrap_or(u32::MAX);
        let is_name_valid = is_valid_name(name);
        let facts = FieldFacts {
            entry_size: length(name).saturating_add(length(value)).saturating_add(ENTRY_OVERHEAD),
            value_length: length(value),
            name_index: 0,
            known: Known::of(name),
            is_name_valid,
            is_valid: is_name_valid && is_valid_value(value),
        };
        if self.has_room(facts, limits) {
            let (name_place, value_place) =
                self.spare(name.len() + value.len()).split_at_mut(name.len());
            name_place.copy_from_slice(name);
            value_place.copy_from_slice(value);
            self.keep_spare(facts);
        }
    }

    /// Adds an entry of the static table.
    #[inline]
    pub(super) fn push_static(&mut self, index: u8, limits: ListLimits) {
        let fixed = static_table::entry(index);
        let facts = FieldFacts {
            entry_size: fixed.entry_size,
            value_length: fixed.value.len() as u32,
            name_index: index,
            known: fixed.known,
            is_name_valid: true,
            is_valid: true,
        };
        if self.has_room(facts, limits) {
            self.entries.push(Entry { facts, start: STATIC_VALUE });
        }
    }

    /// Adds a copy of an entry of the dynamic table.
    #[inline]
    pub(super) fn push_copy(&mut self, entry: &TableEntry<'_>, limits: ListLimits) {
        if self.has_room(*entry.facts, limits) {
            let length = entry.octets.len();
            match self.octets.get_mut(self.used..).and_then(|spare| spare.get_mut(..length)) {
                Some(place) => place.copy_from_slice(entry.octets),
                None => self.spare(length).copy_from_slice(entry.octets),
            }
            self.entries.push(Entry { facts: *entry.facts, start: self.used as u32 });
            self.used += length;
        }
    }

    /// Adds a field whose octets the caller has put at the start of the spare memory.
    #[inline]
    pub(super) fn push_spare(&mut self, facts: FieldFacts, limits: ListLimits) {
        if self.has_room(facts, limits) {
            self.keep_spare(facts);
        }
    }

    /// Returns memory of `length` octets behind the kept fields. What is written there stays until
    /// the next call of this or of a `push_…` function.
    #[inline]
    pub(super) fn spare(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if end > self.octets.len() {
            self.grow(end);
        }
        self.octets.get_mut(self.used..end).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, end: usize) {
        let length = end.max(self.octets.len() * 2).max(LEAST_CAPACITY);
        self.octets.resize(length, 0);
    }

    #[inline]
    fn keep_spare(&mut self, facts: FieldFacts) {
        self.entries.push(Entry { facts, start: self.used as u32 });
        self.used += facts.stored_length();
    }

    /// Counts a field, and returns whether it has to be kept.
    #[inline]
    fn has_room(&mut self, facts: FieldFacts, limits: ListLimits) -> bool {
        self.list_bytes = self.list_bytes.saturating_add(facts.entry_size as usize);
        let has_room = self.list_bytes <= limits.bytes && self.entries.len() < limits.fields;
        if !has_room {
            self.is_too_large = true;
        }
        has_room
    }
}
