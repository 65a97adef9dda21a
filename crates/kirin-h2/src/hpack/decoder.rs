//! Decodes header blocks.

use super::{
    dynamic_table::{DynamicTable, ENTRY_OVERHEAD, FieldFacts},
    error::{HpackError, MOST_LIST_BYTES},
    fields::{FieldBuffer, ListLimits},
    huffman, integer,
    known::Known,
    static_table::{self, STATIC_ENTRIES},
    validity::{is_valid_name, is_valid_value},
};

/// The size of both tables at the start of a connection (RFC 9113, section 6.5.2).
pub(super) const INITIAL_TABLE_BYTES: u32 = 4096;

/// The most size updates at the start of a block: the smallest size in between and the last one.
const MOST_SIZE_UPDATES: usize = 2;

/// The decoder of the header blocks that a peer sends on one connection.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The largest size that an update may have.
    most_table_bytes: u32,
}

impl Decoder {
    /// Creates a decoder. `table_bytes` is the `SETTINGS_HEADER_TABLE_SIZE` that we announce, at
    /// least 4096.
    ///
    /// The table starts with the size of the protocol, because the peer may send blocks before it
    /// has read our settings.
    pub fn new(table_bytes: u32) -> Self {
        Self {
            table: DynamicTable::new(INITIAL_TABLE_BYTES),
            most_table_bytes: table_bytes.max(INITIAL_TABLE_BYTES),
        }
    }

    /// Returns the memory that the dynamic table holds, in octets.
    pub fn held_bytes(&self) -> usize {
        self.table.held_bytes()
    }

    /// Decodes a complete header block and appends its fields to `fields`, which the caller has
    /// cleared.
    ///
    /// If the list is longer than `limit_bytes` or has more than `limit_fields` fields, the rest is
    /// not kept, and [`FieldBuffer::is_too_large`] says so. The rest is decoded nevertheless,
    /// because the table needs it. References to large entries cost nothing then. A list that is
    /// much longer ([`HpackError::ListTooLong`]) is an attack.
    ///
    /// # Errors
    /// Returns what is wrong with the block. The decoder is of no use after that.
    pub fn decode(
        &mut self,
        block: &[u8],
        limit_bytes: usize,
        limit_fields: usize,
        fields: &mut FieldBuffer,
    ) -> Result<(), HpackError> {
        let limits = fields.limits(limit_bytes, limit_fields);
        let most_bytes = MOST_LIST_BYTES.max(limit_bytes);
        let mut input = block;
        if block.first().is_some_and(|first| is_size_update(*first)) {
            input = self.decode_size_updates(block)?;
        }
        while let Some((first, rest)) = input.split_first() {
            input = rest;
            if *first >= 0x80 {
                let mut index = u32::from(*first & 0x7f);
                if index == 0x7f {
                    (index, input) = integer::decode_rest(0x7f, rest)?;
                }
                self.decode_indexed(index, limits, fields)?;
            } else if *first >= 0x40 {
                input = self.decode_literal::<true>(*first & 0x3f, rest, limits, fields)?;
            } else if is_size_update(*first) {
                return Err(HpackError::MisplacedSizeUpdate);
            } else {
                input = self.decode_literal::<false>(*first & 0x0f, rest, limits, fields)?;
            }
            if fields.list_bytes() > most_bytes {
                return Err(HpackError::ListTooLong);
            }
        }
        Ok(())
    }

    /// Obeys the size updates at the start of a block, and returns what follows.
    #[cold]
    fn decode_size_updates<'a>(&mut self, mut input: &'a [u8]) -> Result<&'a [u8], HpackError> {
        let mut count = 0;
        while let Some((first, rest)) = input.split_first()
            && is_size_update(*first)
        {
            count += 1;
            if count > MOST_SIZE_UPDATES {
                return Err(HpackError::MisplacedSizeUpdate);
            }
            let bytes;
            (bytes, input) = integer::decode(*first, 0x1f, rest)?;
            if bytes > self.most_table_bytes {
                return Err(HpackError::TableSizeTooLarge);
            }
            self.table.set_limit(bytes);
        }
        Ok(input)
    }

    #[inline]
    fn decode_indexed(
        &self,
        index: u32,
        limits: ListLimits,
        fields: &mut FieldBuffer,
    ) -> Result<(), HpackError> {
        if let Some(number) = index.checked_sub(STATIC_ENTRIES + 1) {
            let entry = self.table.get(number as usize).ok_or(HpackError::InvalidIndex)?;
            fields.push_copy(&entry, limits);
        } else if index != 0 {
            fields.push_static(index as u8, limits);
        } else {
            return Err(HpackError::InvalidIndex);
        }
        Ok(())
    }

    /// Decodes a literal field whose first octet has the prefix `prefix`, and returns what follows
    /// the field. `INDEXED` says whether the field goes into the table. Its octets are first put
    /// into the spare memory of `fields`.
    fn decode_literal<'a, const INDEXED: bool>(
        &mut self,
        prefix: u8,
        input: &'a [u8],
        limits: ListLimits,
        fields: &mut FieldBuffer,
    ) -> Result<&'a [u8], HpackError> {
        let mask = if INDEXED { 0x3f } else { 0x0f };
        let (name_index, input) = integer::decode(prefix, mask, input)?;
        let (mut facts, input) = if name_index == 0 {
            decode_name(input, fields)?
        } else {
            let is_kept = INDEXED || !fields.is_too_large();
            (self.indexed_name(name_index, is_kept, fields)?, input)
        };
        let offset = facts.stored_name_length();
        let (value_length, input) = decode_string(input, offset, fields)?;
        let octets = fields.spare(offset + value_length);
        let value = octets.get(offset..).unwrap_or_default();
        facts.entry_size = facts.entry_size.saturating_add(value_length as u32);
        facts.value_length = value_length as u32;
        facts.is_valid = facts.is_name_valid && is_valid_value(value);
        if INDEXED {
            self.table.insert(facts, octets, &[]);
        }
        fields.push_spare(facts, limits);
        Ok(input)
    }

    /// Returns the facts about a name that is in a table, without those about the value. Copies a
    /// name of the dynamic table into the spare memory if the field `is_kept`.
    fn indexed_name(
        &self,
        index: u32,
        is_kept: bool,
        fields: &mut FieldBuffer,
    ) -> Result<FieldFacts, HpackError> {
        if let Some(number) = index.checked_sub(STATIC_ENTRIES + 1) {
            let entry = self.table.get(number as usize).ok_or(HpackError::InvalidIndex)?;
            let length = entry.facts.stored_name_length();
            if is_kept && length > 0 {
                fields.spare(length).copy_from_slice(entry.stored_name());
            }
            let entry_size = entry.facts.entry_size - entry.facts.value_length;
            return Ok(FieldFacts { entry_size, value_length: 0, ..*entry.facts });
        }
        let fixed = static_table::entry(index as u8);
        Ok(FieldFacts {
            entry_size: fixed.name.len() as u32 + ENTRY_OVERHEAD,
            value_length: 0,
            name_index: index as u8,
            known: fixed.known,
            is_name_valid: true,
            is_valid: true,
        })
    }
}

/// Returns whether an octet starts a size update.
#[inline]
fn is_size_update(first: u8) -> bool {
    first & 0xe0 == 0x20
}

/// Decodes a literal name into the spare memory. Returns the facts about it, without those about
/// the value, and what follows it.
fn decode_name<'a>(
    input: &'a [u8],
    fields: &mut FieldBuffer,
) -> Result<(FieldFacts, &'a [u8]), HpackError> {
    let (length, input) = decode_string(input, 0, fields)?;
    let name = fields.spare(length);
    let is_name_valid = is_valid_name(name);
    let facts = FieldFacts {
        entry_size: (length as u32).saturating_add(ENTRY_OVERHEAD),
        value_length: 0,
        name_index: 0,
        known: Known::of(name),
        is_name_valid,
        is_valid: is_name_valid,
    };
    Ok((facts, input))
}

/// Decodes a string into the spare memory behind `offset` octets. Returns its length and what
/// follows it.
#[inline]
fn decode_string<'a>(
    input: &'a [u8],
    offset: usize,
    fields: &mut FieldBuffer,
) -> Result<(usize, &'a [u8]), HpackError> {
    let (first, rest) = input.split_first().ok_or(HpackError::Truncated)?;
    let (length, rest) = integer::decode(*first, 0x7f, rest)?;
    let length = length as usize;
    let (string, rest) = rest.split_at_checked(length).ok_or(HpackError::Truncated)?;
    if first & 0x80 == 0 {
        let place = fields.spare(offset + length).get_mut(offset..).unwrap_or_default();
        place.copy_from_slice(string);
        return Ok((length, rest));
    }
    let space = huffman::decoded_space(length);
    let place = fields.spare(offset + space).get_mut(offset..).unwrap_or_default();
    Ok((huffman::decode(string, place)?, rest))
}
