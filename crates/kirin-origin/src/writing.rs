//! Writes items to the server.

use std::num::NonZeroU64;

use kirin_store::{Expires, Now};

use crate::counters::add;
use crate::encoding::{EncodedItem, ItemHead};
use crate::engine_scripts::{PUT, TOUCH};
use crate::error::OriginError;
use crate::expiry::milliseconds_left;
use crate::origin::StoreOrigin;
use crate::page_begin::PageBegin;
use crate::replies::counts;

/// How long the server remembers that an item was removed. A page that was begun before is not
/// stored meanwhile, and afterwards no page is in progress any more.
const TOMBSTONE_SECONDS: u64 = 600;

/// A write of one key.
#[derive(Clone, Debug)]
pub struct Write<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What the key is to have.
    pub content: Content<'a>,
    /// The version that the content gets. It must be greater than that of what is there
    /// ([`StoreOrigin::next_version`]).
    pub version: u64,
    /// What must be there for the write to be done.
    pub condition: Condition,
}

/// What a key is to have.
#[derive(Clone, Debug)]
pub enum Content<'a> {
    /// An item.
    Item {
        /// The value.
        value: &'a [u8],
        /// The client flags.
        flags: u32,
        /// When the item expires. `None` if that is as before.
        expires: Option<Expires>,
        /// The tags.
        tags: &'a [&'a [u8]],
        /// The CAS unique that a client has chosen.
        chosen_cas: Option<NonZeroU64>,
        /// Whether the item is stale.
        is_stale: bool,
        /// Whether a client has won the right to recache it.
        is_won: bool,
    },
    /// No item.
    Nothing,
}

/// What must be there for a write to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Anything.
    Any,
    /// The version that was loaded. No purge may have come since.
    Unchanged {
        /// [`Loaded::version`](crate::reading::Loaded::version).
        version: u64,
        /// [`Loaded::made`](crate::reading::Loaded::made).
        made: u64,
    },
    /// Nothing that is newer than a page that was begun. No purge may have come since.
    NotNewer(PageBegin),
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The server has it.
    Done,
    /// Something else is there. The caller loads the item and decides again.
    Conflict {
        /// The version that is there.
        version: u64,
    },
    /// It was purged, which the writer did not know.
    Purged {
        /// The version that is there.
        version: u64,
    },
    /// The version of the write is not greater than the one that is there. The caller tries a
    /// greater one.
    Behind {
        /// The version that is there.
        version: u64,
    },
}

impl Written {
    /// Returns the version that was in the way, if one was.
    pub fn in_the_way(self) -> Option<u64> {
        match self {
            Self::Done => None,
            Self::Conflict { version } | Self::Purged { version } | Self::Behind { version } => {
                Some(version)
            }
        }
    }
}

impl StoreOrigin {
    /// Writes a key. When this returns [`Written::Done`], the server has it, and this machine has
    /// no older copy.
    pub async fn write(&self, write: &Write<'_>, now: Now) -> Result<Written, OriginError> {
        let names = &self.config.names;
        let (condition, expected, made) = match write.condition {
            Condition::Any => ("any", 0, None),
            Condition::Unchanged { version, made } => ("version", version, Some(made)),
            Condition::NotNewer(begin) => ("page", begin.version, Some(begin.number)),
        };
        // Without a condition the item gets the present number, which is seldom another one.
        let made_probably = made.unwrap_or_else(|| self.numbers.learned());
        let mut head =
            ItemHead { made: made_probably, version: write.version, ..ItemHead::default() };
        let (encoded, expires, tags) = match &write.content {
            Content::Item { value, flags, expires, tags, chosen_cas, is_stale, is_won } => {
                head = ItemHead {
                    flags: *flags,
                    chosen_cas: *chosen_cas,
                    is_stale: *is_stale,
                    is_won: *is_won,
                    ..head
                };
                (EncodedItem::encode(&head, tags, value), *expires, *tags)
            }
            Content::Nothing => {
                head.is_tombstone = true;
                let expires = Expires::after_seconds(TOMBSTONE_SECONDS, now);
                (EncodedItem::encode(&head, &[], b""), Some(expires), &[][..])
            }
        };
        let encoded = encoded.map_err(|error| OriginError::Unexpected(error.to_string()))?;
        let mut keys =
            vec![names.item(write.key), names.number().to_vec(), names.purges().to_vec()];
        keys.extend(tags.iter().map(|tag| names.tag(tag)));
        let (expected, made) = (expected.to_string(), made.map(|made| made.to_string()));
        let milliseconds = expires
            .map_or_else(|| "keep".into(), |expires| milliseconds_left(expires, now).to_string());
        let connection = self.connection()?;
        let _permit = self.permit()?;
        add(&self.counters.writes, 1);
        let evicts = if connection.facts.evicts { b"1" } else { b"0" };
        let arguments = [
            condition.as_bytes(),
            expected.as_bytes(),
            made.as_deref().unwrap_or_default().as_bytes(),
            milliseconds.as_bytes(),
            evicts,
            encoded.as_bytes(),
        ];
        let outcome = connection.run(PUT, &keys, &arguments).await;
        // Also after an error: the server may have done it.
        self.key_has_changed(write.key);
        let [status, number, version] = counts(&outcome.map_err(|error| self.failed(error))?)?;
        self.numbers.learn(number);
        self.has_seen(version);
        if status == 1 {
            return Ok(Written::Done);
        }
        add(&self.counters.write_conflicts, 1);
        Ok(match status {
            2 => Written::Purged { version },
            3 => Written::Behind { version },
            _ => Written::Conflict { version },
        })
    }

    /// Changes when an item expires, if it has the version that was loaded. `tags` are those of the
    /// item. Returns false if something else is there.
    pub async fn touch(
        &self,
        key: &[u8],
        tags: &[&[u8]],
        version: u64,
        expires: Expires,
        now: Now,
    ) -> Result<bool, OriginError> {
        let mut keys = vec![self.config.names.item(key)];
        keys.extend(tags.iter().map(|tag| self.config.names.tag(tag)));
        let (version, left) = (version.to_string(), milliseconds_left(expires, now).to_string());
        let connection = self.connection()?;
        let _permit = self.permit()?;
        add(&self.counters.writes, 1);
        let outcome = connection.run(TOUCH, &keys, &[version.as_bytes(), left.as_bytes()]).await;
        self.key_has_changed(key);
        let outcome = outcome.map_err(|error| self.failed(error))?;
        Ok(outcome.first() == Some(&1))
    }
}
