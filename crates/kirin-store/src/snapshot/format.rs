//! The format of a snapshot.
//!
//! A file is a header, blocks of records and a footer, all little-endian:
//!
//! ```text
//! header  "KIRINSNP"  version u32  written_at u64  last_sequence u64  xxh3-64 of these
//! block   length u32 (> 0)  xxh3-64 of the payload  payload: whole records
//! footer  0 u32  items u64  payload bytes u64  xxh3-64 of header and all block checksums
//!         "KIRINEND"
//! record  cas u64  expires u32  last access u32  flags u32  marks u8  tags u8  key length u16
//!         value length u32  (tag length u8, tag)*  key  value
//! ```
//!
//! Times in the file are those of the wall clock, so lifetimes continue while the program is
//! stopped. A reader goes through the file twice: first to check every byte of it, then to load it.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::items::item::ItemRef;
use crate::snapshot::error::SnapshotError;
use crate::snapshot::time::{SnapshotTime, translate_expiry};

const MAGIC: &[u8; 8] = b"KIRINSNP";
const END_MAGIC: &[u8; 8] = b"KIRINEND";
/// The format version that is written and read.
const VERSION: u32 = 1;
pub(crate) const HEADER_BYTES: usize = 8 + 4 + 8 + 8 + 8;
const FOOTER_BYTES: usize = 8 + 8 + 8 + 8;
const RECORD_FIXED_BYTES: usize = 8 + 4 + 4 + 4 + 1 + 1 + 2 + 4;
/// A block is closed when it has this many bytes.
const BLOCK_BYTES: usize = 256 << 10;
/// The numbers of a snapshot that was written or loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Items that were written or loaded.
    pub items: u64,
    /// Items in the file that were not loaded: they had expired, were there already, or found no
    /// room.
    pub skipped: u64,
    /// Bytes of records.
    pub bytes: u64,
}

/// Collects records into blocks.
pub(crate) struct BlockWriter<'a, W> {
    to: &'a mut W,
    time: SnapshotTime,
    block: Vec<u8>,
    sums: Xxh3,
    summary: SnapshotSummary,
}

impl<'a, W: Write> BlockWriter<'a, W> {
    pub(crate) fn begin(
        to: &'a mut W,
        time: SnapshotTime,
        last_sequence: u64,
    ) -> io::Result<BlockWriter<'a, W>> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&time.wall.unix_seconds().to_le_bytes());
        header.extend_from_slice(&last_sequence.to_le_bytes());
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        to.write_all(&header)?;
        let mut sums = Xxh3::new();
        sums.update(&header);
        Ok(BlockWriter { to, time, block: Vec::new(), sums, summary: SnapshotSummary::default() })
    }

    pub(crate) fn record(&mut self, item: &ItemRef) -> io::Result<()> {
        let (block, time) = (&mut self.block, self.time);
        let value = item.value_slice();
        let expires = translate_expiry(item.expires, |moment| time.wall_moment_of(moment));
        block.extend_from_slice(&item.cas.to_le_bytes());
        block.extend_from_slice(&expires.raw().to_le_bytes());
        block.extend_from_slice(&time.wall_moment_of(item.last_access).raw().to_le_bytes());
        block.extend_from_slice(&item.flags.to_le_bytes());
        block.push(item.marks);
        block.push(item.tags().count() as u8);
        block.extend_from_slice(&item.key_len.to_le_bytes());
        block.extend_from_slice(&(value.len() as u32).to_le_bytes());
        for tag in item.tags() {
            block.push(tag.len() as u8);
            block.extend_from_slice(tag);
        }
        block.extend_from_slice(item.key());
        block.extend_from_slice(value);
        self.summary.items += 1;
        if self.block.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    fn close_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let sum = xxh3_64(&self.block).to_le_bytes();
        self.to.write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.to.write_all(&sum)?;
        self.to.write_all(&self.block)?;
        self.sums.update(&sum);
        self.summary.bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<SnapshotSummary, SnapshotError> {
        self.close_block()?;
        self.to.write_all(&0u32.to_le_bytes())?;
        self.to.write_all(&self.summary.items.to_le_bytes())?;
        self.to.write_all(&self.summary.bytes.to_le_bytes())?;
        self.to.write_all(&self.sums.digest().to_le_bytes())?;
        self.to.write_all(END_MAGIC)?;
        self.to.flush()?;
        Ok(self.summary)
    }
}

/// Reads a complete snapshot and compares all its checksums and counts. Returns the last sequence
/// number.
pub(crate) fn check(from: &mut impl Read) -> Result<u64, SnapshotError> {
    let mut at_byte = 0u64;
    let damaged = |at_byte, what| SnapshotError::Damaged { at_byte, what };
    let mut header = Vec::new();
    from.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    if !header.starts_with(MAGIC) {
        let found = header.get(..header.len().min(MAGIC.len())).unwrap_or_default();
        // A file with only the beginning of our own magic is cut off and not foreign.
        if !found.is_empty() && MAGIC.starts_with(found) {
            return Err(damaged(header.len() as u64, "the file ends in its header"));
        }
        return Err(SnapshotError::Foreign { found: found.escape_ascii().to_string() });
    }
    let mut fields = &header[MAGIC.len()..];
    let ends = || damaged(header.len() as u64, "the file ends in its header");
    let version = u32::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    if version != VERSION {
        return Err(SnapshotError::Version { found: version, supported: VERSION });
    }
    let _written_at = u64::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    let last_sequence = u64::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    let header_sum = u64::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    if header_sum != xxh3_64(&header[..HEADER_BYTES - 8]) {
        return Err(damaged(0, "the header's checksum does not match"));
    }
    at_byte += HEADER_BYTES as u64;

    let mut sums = Xxh3::new();
    sums.update(&header);
    let (mut items, mut bytes) = (0u64, 0u64);
    let mut block = Vec::new();
    loop {
        let length = read_checked(from, at_byte).map(u32::from_le_bytes)?;
        at_byte += 4;
        if length == 0 {
            break;
        }
        let sum: [u8; 8] = read_checked(from, at_byte)?;
        // `read_to_end` grows with the bytes that are there, so a wrong length allocates nothing.
        block.clear();
        from.take(length.into()).read_to_end(&mut block)?;
        if block.len() < length as usize {
            return Err(damaged(at_byte + 8 + block.len() as u64, "the file ends in a block"));
        }
        if xxh3_64(&block).to_le_bytes() != sum {
            return Err(damaged(at_byte, "a block's checksum does not match"));
        }
        let mut records = &block[..];
        while !records.is_empty() {
            SnapshotRecord::parse(&mut records)
                .ok_or(damaged(at_byte, "a record does not fit its block"))?;
            items += 1;
        }
        sums.update(&sum);
        bytes += u64::from(length);
        at_byte += 8 + u64::from(length);
    }
    let footer: [u8; FOOTER_BYTES] = read_checked(from, at_byte)?;
    let mut want = Vec::with_capacity(FOOTER_BYTES);
    want.extend_from_slice(&items.to_le_bytes());
    want.extend_from_slice(&bytes.to_le_bytes());
    want.extend_from_slice(&sums.digest().to_le_bytes());
    want.extend_from_slice(END_MAGIC);
    if footer[..] != want[..] {
        return Err(damaged(at_byte, "the footer does not match what comes before it"));
    }
    if from.read(&mut [0])? != 0 {
        return Err(damaged(at_byte + FOOTER_BYTES as u64, "there is more after the footer"));
    }
    Ok(last_sequence)
}

/// A record of a block.
pub(crate) struct SnapshotRecord<'a> {
    pub(crate) cas: u64,
    pub(crate) expires: u32,
    pub(crate) last_access: u32,
    pub(crate) flags: u32,
    pub(crate) marks: u8,
    pub(crate) tags: Vec<&'a [u8]>,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> SnapshotRecord<'a> {
    /// Takes one record off `records`.
    pub(crate) fn parse(records: &mut &'a [u8]) -> Option<SnapshotRecord<'a>> {
        if records.len() < RECORD_FIXED_BYTES {
            return None;
        }
        let cas = u64::from_le_bytes(take_array(records)?);
        let expires = u32::from_le_bytes(take_array(records)?);
        let last_access = u32::from_le_bytes(take_array(records)?);
        let flags = u32::from_le_bytes(take_array(records)?);
        let [marks, tag_count] = take_array(records)?;
        let key_len = u16::from_le_bytes(take_array(records)?);
        let value_len = u32::from_le_bytes(take_array(records)?);
        let mut tags = Vec::with_capacity(tag_count.into());
        for _ in 0..tag_count {
            let [tag_len] = take_array(records)?;
            tags.push(take(records, tag_len.into())?);
        }
        let key = take(records, key_len.into())?;
        let value = take(records, value_len as usize)?;
        Some(SnapshotRecord { cas, expires, last_access, flags, marks, tags, key, value })
    }
}

fn take<'a>(from: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    from.split_off(..len)
}

fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*array)
}

pub(crate) fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    from.read_exact(&mut array)?;
    Ok(array)
}

/// Reads a field. A file that ends there is damaged.
fn read_checked<const N: usize>(
    from: &mut impl Read,
    at_byte: u64,
) -> Result<[u8; N], SnapshotError> {
    read_array(from).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            SnapshotError::Damaged { at_byte, what: "the file ends early" }
        }
        _ => SnapshotError::Io(error),
    })
}
