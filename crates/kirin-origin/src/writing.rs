//! Writes items to the server.

use std::num::NonZeroU64;

use kirin_store::{Expires, Now};

use crate::connection::Connection;
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
        /// The version that is there. In a cluster it is 0: nobody has looked.
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
        let order = WriteOrder::of(write, now);
        let servers = self.servers()?;
        let _permit = self.permit()?;
        add(&self.counters.writes, 1);
        let written = if servers.is_cluster() {
            self.write_in_cluster(&servers, &order).await
        } else {
            self.write_at_once(&servers.first, &order).await
        };
        // Also after an error: the server may have done it.
        self.key_has_changed(write.key);
        let (written, number, version) = written.map_err(|error| self.failed(error))?;
        self.numbers.learn(number);
        self.has_seen(version);
        if written != Written::Done {
            add(&self.counters.write_conflicts, 1);
        }
        Ok(written)
    }

    /// Writes with one script. Returns the present number of purges and the version that is there,
    /// too.
    async fn write_at_once(
        &self,
        server: &Connection,
        order: &WriteOrder<'_>,
    ) -> Result<(Written, u64, u64), OriginError> {
        let names = &self.config.names;
        let mut keys =
            vec![names.item(order.key), names.number().to_vec(), names.purges().to_vec()];
        keys.extend(order.tags.iter().map(|tag| names.tag(tag)));
        // Without a condition the item gets the present number, which is seldom another one.
        let made_probably = order.made.unwrap_or_else(|| self.numbers.learned());
        let encoded = order.encoded(made_probably)?;
        let (made_text, milliseconds) = (order.made_text(), order.milliseconds_text());
        let arguments = [
            order.condition.as_bytes(),
            order.expected.as_bytes(),
            made_text.as_bytes(),
            milliseconds.as_bytes(),
            evicts(server),
            encoded.as_bytes(),
        ];
        let [status, number, version] = counts(&server.run(PUT, &keys, &arguments).await?)?;
        Ok((written(status, version), number, version))
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
        let names = &self.config.names;
        let mut keys = vec![names.item(key)];
        let (version, left) = (version.to_string(), milliseconds_left(expires, now).to_string());
        let servers = self.servers()?;
        let _permit = self.permit()?;
        add(&self.counters.writes, 1);
        let mut outcome = Ok(Vec::new());
        if servers.is_cluster() {
            // A tag that outlives its items for longer does no harm.
            outcome = self.keep_tags(&servers, tags, "", &left).await.map(|_| Vec::new());
        } else {
            keys.extend(tags.iter().map(|tag| names.tag(tag)));
        }
        if outcome.is_ok() {
            let server = keys.first().map_or(&servers.first, |name| servers.of(name));
            outcome = server.run(TOUCH, &keys, &[version.as_bytes(), left.as_bytes()]).await;
        }
        self.key_has_changed(key);
        let outcome = outcome.map_err(|error| self.failed(error))?;
        Ok(outcome.first() == Some(&1))
    }
}

/// A write, as the scripts take it.
pub(crate) struct WriteOrder<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) tags: &'a [&'a [u8]],
    /// The word for the condition.
    pub(crate) condition: &'static str,
    /// The version expected, or the one at which a page was begun.
    pub(crate) expected: String,
    /// The number of purges that the writer knows, if the condition has one.
    pub(crate) made: Option<u64>,
    /// The milliseconds until the item expires. `None`: those that are left of what is there.
    pub(crate) milliseconds: Option<u64>,
    head: ItemHead,
    value: &'a [u8],
}

impl<'a> WriteOrder<'a> {
    fn of(write: &Write<'a>, now: Now) -> Self {
        let (condition, expected, made) = match write.condition {
            Condition::Any => ("any", 0, None),
            Condition::Unchanged { version, made } => ("version", version, Some(made)),
            Condition::NotNewer(begin) => ("page", begin.version, Some(begin.number)),
        };
        let mut head = ItemHead { version: write.version, ..ItemHead::default() };
        let (value, expires, tags) = match write.content {
            Content::Item { value, flags, expires, tags, chosen_cas, is_stale, is_won } => {
                head = ItemHead { flags, chosen_cas, is_stale, is_won, ..head };
                (value, expires, tags)
            }
            Content::Nothing => {
                head.is_tombstone = true;
                (&b""[..], Some(Expires::after_seconds(TOMBSTONE_SECONDS, now)), &[][..])
            }
        };
        Self {
            key: write.key,
            tags,
            condition,
            expected: expected.to_string(),
            made,
            milliseconds: expires.map(|expires| milliseconds_left(expires, now)),
            head,
            value,
        }
    }

    /// Returns `made`, or nothing.
    pub(crate) fn made_text(&self) -> String {
        self.made.map(|made| made.to_string()).unwrap_or_default()
    }

    /// Returns `milliseconds`, or `keep`.
    pub(crate) fn milliseconds_text(&self) -> String {
        self.milliseconds.map_or_else(|| "keep".into(), |milliseconds| milliseconds.to_string())
    }

    /// Returns the item that is made under a number of purges.
    pub(crate) fn encoded(&self, made: u64) -> Result<EncodedItem, OriginError> {
        let encoded = EncodedItem::encode(&ItemHead { made, ..self.head }, self.tags, self.value);
        encoded.map_err(|error| OriginError::Unexpected(error.to_string()))
    }
}

/// Returns the outcome for a status of the scripts.
pub(crate) fn written(status: u64, version: u64) -> Written {
    match status {
        1 => Written::Done,
        2 => Written::Purged { version },
        3 => Written::Behind { version },
        _ => Written::Conflict { version },
    }
}

/// Returns whether a server may evict keys, as the scripts take it.
pub(crate) fn evicts(server: &Connection) -> &'static [u8] {
    if server.facts.evicts { b"1" } else { b"0" }
}
