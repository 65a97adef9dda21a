//! The format in which the contents of a store are handed over, all little-endian:
//!
//! ```text
//! frame   kind u8  length u32  payload
//! item    cas u64  sequence u64  expires u32  last access u32  flags u32  marks u8  tags u8
//!         key length u16  (tag length u8, tag)*  key  value
//! absent  key
//! tag     soft u8  sequence u64  name
//! prefix  soft u8  sequence u64  prefix
//! flush   sequence u64
//! due     time u32, or 0 for none
//! up      delta u64  key
//! down    delta u64  key
//! touch   expires u32  key
//! round   number u64
//! ```
//!
//! `copied`, `switched` have no payload. Times are those of the giving side's clock.

use std::io::{self, Read, Write};

use crate::clock::Expires;
use crate::hand_over::item_step::ItemStep;
use crate::invalidation::state::Invalidation;
use crate::items::item::ItemRef;

const ITEM: u8 = 1;
const ABSENT: u8 = 2;
const TAG: u8 = 3;
const PREFIX: u8 = 4;
const FLUSH: u8 = 5;
const FLUSH_DUE: u8 = 6;
const COPIED: u8 = 7;
const SWITCHED: u8 = 8;
const UP: u8 = 9;
const DOWN: u8 = 10;
const TOUCH: u8 = 11;
const ROUND: u8 = 12;

/// What a frame says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Item(ItemFrame<'a>),
    Absent(&'a [u8]),
    Step(&'a [u8], ItemStep),
    Invalidated(InvalidatedFrame<'a>),
    /// The raw time of a delayed flush, or 0.
    FlushDue(u32),
    Copied,
    Switched,
    /// All that was changed before this round of changes has been sent.
    Round(u64),
}

/// An item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ItemFrame<'a> {
    pub(crate) cas: u64,
    pub(crate) sequence: u64,
    pub(crate) expires: u32,
    pub(crate) last_access: u32,
    pub(crate) flags: u32,
    pub(crate) marks: u8,
    pub(crate) tags: Vec<&'a [u8]>,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// An invalidation of the items up to a sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidatedFrame<'a> {
    pub(crate) what: Invalidated<'a>,
    pub(crate) sequence: u64,
}

/// The items that an invalidation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Invalidated<'a> {
    Tag(&'a [u8], Invalidation),
    Prefix(&'a [u8], Invalidation),
    All,
}

/// Writes the item as a reader found it.
pub(crate) fn write_item(to: &mut impl Write, item: &ItemRef) -> io::Result<()> {
    let value = item.value_slice();
    let mut head = Vec::with_capacity(64 + item.key().len());
    head.extend_from_slice(&item.cas.to_le_bytes());
    let sequence = item.side.as_ref().and_then(|side| side.sequence).unwrap_or(item.cas);
    head.extend_from_slice(&sequence.to_le_bytes());
    head.extend_from_slice(&item.expires.raw().to_le_bytes());
    head.extend_from_slice(&item.last_access.raw().to_le_bytes());
    head.extend_from_slice(&item.flags.to_le_bytes());
    head.push(item.marks);
    head.push(item.tags().count() as u8);
    head.extend_from_slice(&item.key_len.to_le_bytes());
    for tag in item.tags() {
        head.push(tag.len() as u8);
        head.extend_from_slice(tag);
    }
    head.extend_from_slice(item.key());
    write_head(to, ITEM, head.len() + value.len())?;
    to.write_all(&head)?;
    to.write_all(value)
}

pub(crate) fn write_absent(to: &mut impl Write, key: &[u8]) -> io::Result<()> {
    write_head(to, ABSENT, key.len())?;
    to.write_all(key)
}

pub(crate) fn write_step(to: &mut impl Write, key: &[u8], step: ItemStep) -> io::Result<()> {
    let mut head = Vec::with_capacity(8);
    let kind = match step {
        ItemStep::Up(delta) => {
            head.extend_from_slice(&delta.to_le_bytes());
            UP
        }
        ItemStep::Down(delta) => {
            head.extend_from_slice(&delta.to_le_bytes());
            DOWN
        }
        ItemStep::Touch(expires) => {
            head.extend_from_slice(&expires.raw().to_le_bytes());
            TOUCH
        }
    };
    write_head(to, kind, head.len() + key.len())?;
    to.write_all(&head)?;
    to.write_all(key)
}

pub(crate) fn write_invalidated(
    to: &mut impl Write,
    invalidated: &InvalidatedFrame<'_>,
) -> io::Result<()> {
    let sequence = invalidated.sequence.to_le_bytes();
    let (kind, name, how) = match invalidated.what {
        Invalidated::Tag(name, how) => (TAG, name, how),
        Invalidated::Prefix(prefix, how) => (PREFIX, prefix, how),
        Invalidated::All => {
            write_head(to, FLUSH, sequence.len())?;
            return to.write_all(&sequence);
        }
    };
    write_head(to, kind, 1 + sequence.len() + name.len())?;
    to.write_all(&[u8::from(how == Invalidation::Soft)])?;
    to.write_all(&sequence)?;
    to.write_all(name)
}

pub(crate) fn write_flush_due(to: &mut impl Write, raw: u32) -> io::Result<()> {
    write_head(to, FLUSH_DUE, 4)?;
    to.write_all(&raw.to_le_bytes())
}

pub(crate) fn write_copied(to: &mut impl Write) -> io::Result<()> {
    write_head(to, COPIED, 0)
}

pub(crate) fn write_switched(to: &mut impl Write) -> io::Result<()> {
    write_head(to, SWITCHED, 0)
}

pub(crate) fn write_round(to: &mut impl Write, number: u64) -> io::Result<()> {
    write_head(to, ROUND, 8)?;
    to.write_all(&number.to_le_bytes())
}

fn write_head(to: &mut impl Write, kind: u8, length: usize) -> io::Result<()> {
    let length = u32::try_from(length).map_err(|_| io::Error::other("an item is too large"))?;
    to.write_all(&[kind])?;
    to.write_all(&length.to_le_bytes())
}

/// Reads a frame into `payload`. Returns its kind, or `None` at the end of the stream between two
/// frames.
pub(crate) fn read(from: &mut impl Read, payload: &mut Vec<u8>) -> io::Result<Option<u8>> {
    let mut kind = [0];
    if from.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    payload.clear();
    // It grows with the bytes that are there, so a wrong length allocates nothing.
    from.take(length.into()).read_to_end(payload)?;
    match payload.len() == length as usize {
        true => Ok(Some(kind[0])),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Parses a frame. Returns `None` for other bytes.
pub(crate) fn parse(kind: u8, mut payload: &[u8]) -> Option<Frame<'_>> {
    Some(match kind {
        ITEM => Frame::Item(parse_item(payload)?),
        ABSENT => Frame::Absent(payload),
        TAG | PREFIX => {
            let [soft] = take(&mut payload)?;
            let how = if soft == 1 { Invalidation::Soft } else { Invalidation::Hard };
            let sequence = u64::from_le_bytes(take(&mut payload)?);
            let what = match kind {
                TAG => Invalidated::Tag(payload, how),
                _ => Invalidated::Prefix(payload, how),
            };
            Frame::Invalidated(InvalidatedFrame { what, sequence })
        }
        FLUSH => {
            let sequence = u64::from_le_bytes(take(&mut payload)?);
            Frame::Invalidated(InvalidatedFrame { what: Invalidated::All, sequence })
        }
        FLUSH_DUE => Frame::FlushDue(u32::from_le_bytes(take(&mut payload)?)),
        UP => {
            let delta = u64::from_le_bytes(take(&mut payload)?);
            Frame::Step(payload, ItemStep::Up(delta))
        }
        DOWN => {
            let delta = u64::from_le_bytes(take(&mut payload)?);
            Frame::Step(payload, ItemStep::Down(delta))
        }
        TOUCH => {
            let expires = Expires::from_raw(u32::from_le_bytes(take(&mut payload)?));
            Frame::Step(payload, ItemStep::Touch(expires))
        }
        ROUND => Frame::Round(u64::from_le_bytes(take(&mut payload)?)),
        COPIED => Frame::Copied,
        SWITCHED => Frame::Switched,
        _ => return None,
    })
}

fn parse_item(mut payload: &[u8]) -> Option<ItemFrame<'_>> {
    let cas = u64::from_le_bytes(take(&mut payload)?);
    let sequence = u64::from_le_bytes(take(&mut payload)?);
    let expires = u32::from_le_bytes(take(&mut payload)?);
    let last_access = u32::from_le_bytes(take(&mut payload)?);
    let flags = u32::from_le_bytes(take(&mut payload)?);
    let [marks, tag_count] = take(&mut payload)?;
    let key_len = u16::from_le_bytes(take(&mut payload)?);
    let mut tags = Vec::new();
    for _ in 0..tag_count {
        let [length] = take(&mut payload)?;
        let (tag, rest) = payload.split_at_checked(length.into())?;
        tags.push(tag);
        payload = rest;
    }
    let (key, value) = payload.split_at_checked(key_len.into())?;
    Some(ItemFrame { cas, sequence, expires, last_access, flags, marks, tags, key, value })
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*taken)
}
