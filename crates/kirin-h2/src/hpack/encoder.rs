//! Encodes header blocks.

use std::collections::VecDeque;

use super::{
    decoder::INITIAL_TABLE_BYTES,
    dynamic_table::{DynamicTable, ENTRY_OVERHEAD},
    hash::FieldHash,
    indexing::{self, Indexing, RecentFields},
    integer,
    literal::{NameForm, table_index, write_literal},
    static_table,
};

/// The first index of `:status` in the static table.
const STATUS_INDEX: u8 = 8;
/// The index of `content-length` in the static table.
const CONTENT_LENGTH_INDEX: u8 = 28;

/// The number of places that find an entry by its hash without a search.
const PLACES: usize = 32;

/// The encoder of the header blocks that we send on one connection.
#[derive(Debug)]
pub struct Encoder {
    table: DynamicTable,
    /// The hashes of the table's entries, in the order of the table.
    hashes: VecDeque<u32>,
    /// The serial number of the newest entry with a hash, at the place that the hash has. Entries
    /// that it does not name are searched for in `hashes`.
    places: [u32; PLACES],
    /// The number of entries that were ever inserted, modulo 2³².
    inserted: u32,
    recent: RecentFields,
    /// The most octets that we use, whatever the client allows.
    most_table_bytes: u32,
    /// The size of the client's table, as it knows it.
    client_table_bytes: u32,
    /// A size update that the next block starts with.
    owed: Option<SizeUpdate>,
}

/// A change of the table's size that the client does not know yet.
#[derive(Clone, Copy, Debug)]
struct SizeUpdate {
    /// The smallest size since the last block.
    least: u32,
    /// The size now.
    last: u32,
}

impl Encoder {
    /// Creates an encoder. `table_bytes` is the most that its table uses, whatever the client
    /// allows.
    ///
    /// The client need not know that it is less than its own table: the entries that we still have
    /// are the newest ones of its table, so they have the same indexes.
    pub fn new(table_bytes: u32) -> Self {
        Self {
            table: DynamicTable::new(table_bytes.min(INITIAL_TABLE_BYTES)),
            hashes: VecDeque::new(),
            places: [0; PLACES],
            inserted: 0,
            recent: RecentFields::default(),
            most_table_bytes: table_bytes,
            client_table_bytes: INITIAL_TABLE_BYTES,
            owed: None,
        }
    }

    /// Obeys the client's `SETTINGS_HEADER_TABLE_SIZE`. If the size of the client's table changes,
    /// the next block starts with size updates (RFC 7541, section 4.2).
    pub fn set_client_limit(&mut self, bytes: u32) {
        let last = bytes.min(self.most_table_bytes);
        let before = self.owed.map_or(self.client_table_bytes, |update| update.least);
        let least = before.min(bytes);
        let is_less = least < self.client_table_bytes;
        self.owed =
            (is_less || last > self.client_table_bytes).then_some(SizeUpdate { least, last });
    }

    /// Begins a header block: appends the size updates that the client must know first.
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(update) = self.owed.take() {
            self.write_size_updates(update, out);
        }
    }

    #[cold]
    fn write_size_updates(&mut self, update: SizeUpdate, out: &mut Vec<u8>) {
        if update.least < update.last.min(self.client_table_bytes) {
            integer::encode(update.least, 0x20, 0x1f, out);
            self.table.set_limit(update.least);
        }
        integer::encode(update.last, 0x20, 0x1f, out);
        self.client_table_bytes = update.last;
        self.table.set_limit(update.last);
        self.hashes.truncate(self.table.len());
        self.hashes.shrink_to_fit();
    }

    /// Returns the memory that the dynamic table holds, in octets.
    pub fn held_bytes(&self) -> usize {
        self.table.held_bytes() + self.hashes.capacity() * size_of::<u32>()
    }

    /// Appends `:status`.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let mut digits = itoa::Buffer::new();
                let value = digits.format(status).as_bytes();
                self.lookup_and_write(NameForm::Static(STATUS_INDEX), value, out);
                return;
            }
        };
        out.push(0x80 | index);
    }

    /// Appends `content-length` and leaves the table as it is.
    pub fn content_length(&mut self, length: u64, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        let value = digits.format(length).as_bytes();
        integer::encode(u32::from(CONTENT_LENGTH_INDEX), 0, 0x0f, out);
        out.push(value.len() as u8);
        out.extend_from_slice(value);
    }

    /// Appends one field. White space around the value is left out. Upper-case letters of the name
    /// are written in lower case.
    ///
    /// A field that the table has is written as its index. Others may go into the table, if they
    /// are likely to repeat.
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let value = value.trim_ascii();
        let index = static_table::first_index(name);
        if index == 0 {
            self.lookup_and_write(NameForm::Other(name), value, out);
        } else if indexing::is_forbidden(index) {
            write_literal(0x10, 0x0f, NameForm::Static(index), None, value, out);
        } else {
            self.lookup_and_write(NameForm::Static(index), value, out);
        }
    }

    /// Appends a field that may be in the table, or go into it.
    #[inline]
    fn lookup_and_write(&mut self, form: NameForm<'_>, value: &[u8], out: &mut Vec<u8>) {
        let size = form.name_length().saturating_add(value.len());
        if size.saturating_add(ENTRY_OVERHEAD as usize) > self.table.limit() as usize / 4 {
            write_literal(0, 0x0f, form, None, value, out);
            return;
        }
        let hash = match form {
            NameForm::Static(index) => FieldHash::with_static_name(index, value),
            NameForm::Other(name) => FieldHash::with_name(name, value),
        };
        match self.find_field(form, value, hash) {
            Some(number) => integer::encode(table_index(number), 0x80, 0x7f, out),
            None => self.write_new(form, value, hash, out),
        }
    }

    /// Appends a field that is not in the table, and puts it there if it is likely to repeat.
    #[inline(never)]
    fn write_new(&mut self, form: NameForm<'_>, value: &[u8], hash: FieldHash, out: &mut Vec<u8>) {
        let (indexing, name_number) = match form {
            NameForm::Static(index) => (indexing::of_static_name(index, value), None),
            NameForm::Other(name) => {
                (indexing::of_other_name(name, value), self.find_name(name, hash))
            }
        };
        if indexing == Indexing::WhenRepeated && !self.recent.has_seen(hash) {
            write_literal(0, 0x0f, form, name_number, value, out);
            return;
        }
        write_literal(0x40, 0x3f, form, name_number, value, out);
        self.table.insert(form.facts(value), form.stored_name(), value);
        self.hashes.push_front(hash.0);
        self.inserted = self.inserted.wrapping_add(1);
        self.places[place(hash)] = self.inserted;
        while self.hashes.len() > self.table.len() {
            self.hashes.pop_back();
        }
    }

    /// Returns the number of the table's entry that equals a field.
    #[inline]
    fn find_field(&mut self, form: NameForm<'_>, value: &[u8], hash: FieldHash) -> Option<usize> {
        let newest = self.inserted.wrapping_sub(self.places[place(hash)]) as usize;
        if self.has_field(newest, form, value) {
            return Some(newest);
        }
        let number =
            self.find::<{ FieldHash::FIELD }>(hash, |number| self.has_field(number, form, value))?;
        self.places[place(hash)] = self.inserted.wrapping_sub(number as u32);
        Some(number)
    }

    /// Returns whether the entry with a number exists and equals a field.
    #[inline]
    fn has_field(&self, number: usize, form: NameForm<'_>, value: &[u8]) -> bool {
        let Some(entry) = self.table.get(number) else { return false };
        match form {
            NameForm::Static(index) => entry.facts.name_index == index && entry.octets == value,
            NameForm::Other(name) => {
                entry.facts.name_index == 0
                    && entry.value() == value
                    && equals_ignoring_case(name, entry.stored_name())
            }
        }
    }

    /// Returns the number of an entry with a name that is not in the static table.
    fn find_name(&self, name: &[u8], hash: FieldHash) -> Option<usize> {
        self.find::<{ FieldHash::NAME }>(hash, |number| {
            self.table.get(number).is_some_and(|entry| {
                entry.facts.name_index == 0 && equals_ignoring_case(name, entry.stored_name())
            })
        })
    }

    /// Returns the first number of a hash whose bits `MASK` equal those of `hash` and that `accept`
    /// accepts.
    #[inline]
    fn find<const MASK: u32>(
        &self,
        hash: FieldHash,
        accept: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let (front, back) = self.hashes.as_slices();
        find_hash::<MASK>(front, hash, &accept).or_else(|| {
            find_hash::<MASK>(back, hash, &|number| accept(front.len() + number))
                .map(|number| front.len() + number)
        })
    }
}

/// Returns the first number in `hashes` that equals `hash` in the bits `MASK`, and that `accept`
/// accepts. Compares eight at a time, which the compiler does with few instructions.
#[inline]
fn find_hash<const MASK: u32>(
    hashes: &[u32],
    hash: FieldHash,
    accept: &impl Fn(usize) -> bool,
) -> Option<usize> {
    let is_equal = |other: u32| (other ^ hash.0) & MASK == 0;
    let (chunks, rest) = hashes.as_chunks::<8>();
    for (number, chunk) in chunks.iter().enumerate() {
        if chunk.iter().fold(false, |any, other| any | is_equal(*other)) {
            let first = number * 8;
            let found = (first..first + 8)
                .zip(chunk)
                .find(|(place, other)| is_equal(**other) && accept(*place));
            if let Some((place, _)) = found {
                return Some(place);
            }
        }
    }
    let first = chunks.len() * 8;
    let found = rest.iter().zip(first..).find(|(other, place)| is_equal(**other) && accept(*place));
    found.map(|(_, place)| place)
}

/// Returns the place of a hash in [`Encoder::places`].
#[inline]
fn place(hash: FieldHash) -> usize {
    (hash.0 ^ (hash.0 >> 16)) as usize % PLACES
}

#[inline]
fn equals_ignoring_case(name: &[u8], other: &[u8]) -> bool {
    name == other || name.eq_ignore_ascii_case(other)
}
