//! The values of keys in the engine: items, tombstones, and pairs of numbers.
//!
//! An item is binary, with little-endian numbers:
//!
//! ```text
//! offset  0  u8   format, 1
//!         1  u8   marks: 1 stale, 2 won, 4 tombstone
//!         2  u32  client flags
//!         6  u64  made
//!        14  u64  version
//!        22  u64  the CAS unique that a client chose, or 0
//!        30  u8   the number of tags
//!        31       (u8 length, tag)*, then the value up to the end
//! ```
//!
//! The scripts in the engine read and write these offsets, too. The expiry is the engine's own and
//! no part of the item. A pair is text: two decimal numbers with a colon between.

use std::fmt;
use std::num::NonZeroU64;

use bytes::Bytes;
use kirin_store::{TAG_LIMIT_BYTES, TAGS_PER_ITEM};

/// The bound of versions and of the numbers of purges. The scripts in the engine compute with
/// doubles, which are exact below it.
pub const NUMBER_LIMIT: u64 = 1 << 53;

/// The version of a value that this Kirin cannot read. No item has it, so a write with a condition
/// never replaces such a value.
pub const UNREADABLE: u64 = NUMBER_LIMIT - 1;

/// The format that is written and read.
const FORMAT: u8 = 1;

/// The bytes before the tags.
const HEAD_BYTES: usize = 31;

const STALE: u8 = 1;
const WON: u8 = 2;
const TOMBSTONE: u8 = 4;

/// The part of an item that has a fixed size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemHead {
    /// The item was invalidated but may still be served.
    pub is_stale: bool,
    /// A client has been told to renew the item.
    pub is_won: bool,
    /// There is no item: it was purged. Tombstones have neither tags nor a value.
    pub is_tombstone: bool,
    /// The client flags.
    pub flags: u32,
    /// The number of the last purge that the writer knew. Later purges invalidate the item. It is
    /// below [`NUMBER_LIMIT`].
    pub made: u64,
    /// An even number that only grows, and that changes with each write of the key. It is below
    /// [`NUMBER_LIMIT`]. The odd number after it may be the CAS unique of the item when a purge has
    /// made it stale. So it is never that of a later item.
    pub version: u64,
    /// The CAS unique, if a client chose it.
    pub chosen_cas: Option<NonZeroU64>,
}

/// An item as the engine stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedItem(Vec<u8>);

/// An item from the engine. It shares the memory of the engine's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedItem {
    /// The part that has a fixed size.
    pub head: ItemHead,
    /// The value.
    pub value: Bytes,
    /// The encoded tags, which have been checked.
    tags: Bytes,
}

/// A limit that an item exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemLimitError {
    /// The item has too many tags.
    #[error("the item has {0} tags: allowed are {TAGS_PER_ITEM}")]
    Tags(usize),
    /// A tag is too long.
    #[error("a tag of the item has {0} bytes: allowed are {TAG_LIMIT_BYTES}")]
    TagLength(usize),
    /// The version or the number of a purge is too large.
    #[error("the item has the number {0}: allowed are those below {NUMBER_LIMIT}")]
    Number(u64),
    /// A tombstone has tags or a value.
    #[error("a tombstone has tags or a value: allowed is neither")]
    Tombstone,
}

/// The reason why a value of the engine is not an item that this Kirin can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A program of another version has written the value. It must not be overwritten by a write
    /// with a condition.
    #[error("the item has the format {0}: this Kirin knows {FORMAT}")]
    UnknownFormat(u8),
    /// The value ends too early.
    #[error("the item ends within its head or its tags")]
    Truncated,
    /// The format has no such marks.
    #[error("the item has the marks {0}: allowed are 0 to 7")]
    UnknownMarks(u8),
    /// The item exceeds a limit.
    #[error(transparent)]
    Limit(#[from] ItemLimitError),
}

impl ItemHead {
    /// Returns the CAS unique: the one that a client chose, or else the version.
    pub fn cas_unique(&self) -> u64 {
        self.chosen_cas.map_or(self.version, NonZeroU64::get)
    }

    fn marks(&self) -> u8 {
        let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
        mark(self.is_stale, STALE) | mark(self.is_won, WON) | mark(self.is_tombstone, TOMBSTONE)
    }

    /// Checks the head of an item with this number of tags, and with a value or without.
    fn check(&self, tags: usize, has_value: bool) -> Result<(), ItemLimitError> {
        if let Some(number) = [self.made, self.version].into_iter().find(|n| *n >= NUMBER_LIMIT) {
            return Err(ItemLimitError::Number(number));
        }
        if tags > TAGS_PER_ITEM {
            return Err(ItemLimitError::Tags(tags));
        }
        if self.is_tombstone && (tags > 0 || has_value) {
            return Err(ItemLimitError::Tombstone);
        }
        Ok(())
    }
}

impl EncodedItem {
    /// Encodes an item with at most [`TAGS_PER_ITEM`] tags of at most [`TAG_LIMIT_BYTES`] each. It
    /// allocates once. The size of the value has no limit here.
    pub fn encode(head: &ItemHead, tags: &[&[u8]], value: &[u8]) -> Result<Self, ItemLimitError> {
        head.check(tags.len(), !value.is_empty())?;
        let tag_count = u8::try_from(tags.len()).map_err(|_| ItemLimitError::Tags(tags.len()))?;
        let tag_bytes: usize = tags.iter().map(|tag| 1 + tag.len()).sum();
        let mut encoded = Vec::with_capacity(HEAD_BYTES + tag_bytes + value.len());
        encoded.extend_from_slice(&[FORMAT, head.marks()]);
        encoded.extend_from_slice(&head.flags.to_le_bytes());
        encoded.extend_from_slice(&head.made.to_le_bytes());
        encoded.extend_from_slice(&head.version.to_le_bytes());
        encoded.extend_from_slice(&head.chosen_cas.map_or(0, NonZeroU64::get).to_le_bytes());
        encoded.push(tag_count);
        for tag in tags {
            encoded.push(tag_length(tag)?);
            encoded.extend_from_slice(tag);
        }
        encoded.extend_from_slice(value);
        Ok(Self(encoded))
    }

    /// Returns the bytes for the engine.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Turns the item into the bytes for the engine, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl DecodedItem {
    /// Decodes an item. It copies neither tags nor value, so `encoded` stays in memory as long as
    /// they do.
    pub fn decode(encoded: &Bytes) -> Result<Self, DecodeError> {
        let mut rest = &encoded[..];
        let [format] = take(&mut rest)?;
        if format != FORMAT {
            return Err(DecodeError::UnknownFormat(format));
        }
        let [marks] = take(&mut rest)?;
        if marks & !(STALE | WON | TOMBSTONE) != 0 {
            return Err(DecodeError::UnknownMarks(marks));
        }
        let head = ItemHead {
            is_stale: marks & STALE != 0,
            is_won: marks & WON != 0,
            is_tombstone: marks & TOMBSTONE != 0,
            flags: u32::from_le_bytes(take(&mut rest)?),
            made: u64::from_le_bytes(take(&mut rest)?),
            version: u64::from_le_bytes(take(&mut rest)?),
            chosen_cas: NonZeroU64::new(u64::from_le_bytes(take(&mut rest)?)),
        };
        let [tag_count] = take(&mut rest)?;
        let tag_count = usize::from(tag_count);
        // No work is done for more tags than are allowed.
        head.check(tag_count, false)?;
        let mut value = rest;
        for _ in 0..tag_count {
            let (tag, after) = split_tag(value).ok_or(DecodeError::Truncated)?;
            tag_length(tag)?;
            value = after;
        }
        head.check(tag_count, !value.is_empty())?;
        let tags = rest.get(..rest.len() - value.len()).unwrap_or_default();
        Ok(Self { head, tags: encoded.slice_ref(tags), value: encoded.slice_ref(value) })
    }

    /// Returns the tags. They share the memory of the item.
    pub fn tags(&self) -> impl Iterator<Item = Bytes> {
        let mut rest = &self.tags[..];
        std::iter::from_fn(move || {
            let (tag, after) = split_tag(rest)?;
            rest = after;
            Some(self.tags.slice_ref(tag))
        })
    }
}

/// Takes the first `N` bytes off.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], DecodeError> {
    let (taken, after) = rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
    *rest = after;
    Ok(*taken)
}

/// Splits off the first tag. Returns `None` if there is no complete one.
fn split_tag(encoded: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = encoded.split_first()?;
    rest.split_at_checked(usize::from(*length))
}

/// Returns the length of a tag, which is checked.
fn tag_length(tag: &[u8]) -> Result<u8, ItemLimitError> {
    match u8::try_from(tag.len()) {
        Ok(length) if tag.len() <= TAG_LIMIT_BYTES => Ok(length),
        _ => Err(ItemLimitError::TagLength(tag.len())),
    }
}

/// The last purges of a tag or a prefix: the text `hard:soft`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// The number of the last hard purge, or 0. Items that were made before it are dead.
    pub hard: u64,
    /// The number of the last soft purge, or 0. Items that were made before it are stale.
    pub soft: u64,
}

/// The last numbers that were given to purges: the text `N:M`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastNumbers {
    /// The last number of any purge (`N`).
    pub of_any: u64,
    /// The last number of a purge of a prefix or of everything (`M`).
    pub of_prefixes: u64,
}

impl Purged {
    /// Parses `hard:soft`. Returns `None` if that is not two decimal numbers below
    /// [`NUMBER_LIMIT`].
    pub fn parse(text: &[u8]) -> Option<Self> {
        parse_pair(text).map(|(hard, soft)| Self { hard, soft })
    }
}

impl LastNumbers {
    /// Parses `N:M`. Returns `None` if that is not two decimal numbers below [`NUMBER_LIMIT`].
    pub fn parse(text: &[u8]) -> Option<Self> {
        parse_pair(text).map(|(of_any, of_prefixes)| Self { of_any, of_prefixes })
    }
}

impl fmt::Display for Purged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.hard, self.soft)
    }
}

impl fmt::Display for LastNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.of_any, self.of_prefixes)
    }
}

fn parse_pair(text: &[u8]) -> Option<(u64, u64)> {
    let (first, second) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some((parse_number(first)?, parse_number(second)?))
}

/// Parses a decimal number below [`NUMBER_LIMIT`], without a sign.
fn parse_number(text: &str) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|number| *number < NUMBER_LIMIT)
}

#[cfg(test)]
#[path = "encoding_tests.rs"]
mod tests;
