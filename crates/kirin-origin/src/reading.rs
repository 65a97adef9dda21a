//! Reads items from the server, and keeps copies of them in the store.

use std::collections::HashMap;

use bytes::Bytes;
use kirin_store::{CopiedItem, Expires, Moment, NewItem, Now};
use redis::Value;

use crate::connection::Connection;
use crate::counters::add;
use crate::encoding::{DecodeError, DecodedItem, LastNumbers, NUMBER_LIMIT, Purged};
use crate::error::OriginError;
use crate::keeper::{numbers_of, unexpected};
use crate::numbers::Judgement;
use crate::origin::StoreOrigin;

/// The version of a value that this Kirin cannot read. No item has it, so a write with a condition
/// never replaces such a value.
pub(crate) const UNREADABLE: u64 = NUMBER_LIMIT - 1;

/// What the server has under a key.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The key.
    pub key: Bytes,
    /// The version of what is there, be it an item that may be served or not. 0 if nothing is.
    pub version: u64,
    /// The number of the last purge that has been looked at.
    pub made: u64,
    /// The item, if it may be served.
    pub item: Option<LoadedItem>,
}

/// An item of the server.
#[derive(Clone, Debug)]
pub struct LoadedItem {
    /// The item.
    pub decoded: DecodedItem,
    /// When it expires.
    pub expires: Expires,
    /// Whether the item is stale, by a mark of its own or by a purge.
    pub is_stale: bool,
}

impl LoadedItem {
    /// Returns whether a client has won the right to recache the item. A purge that makes an item
    /// stale takes that back.
    pub fn is_won(&self) -> bool {
        self.decoded.head.is_won && self.decoded.head.is_stale == self.is_stale
    }

    /// Returns the item for a store. `tags` are those of the item, and `was_fetched` is what the
    /// store shows of earlier reads.
    pub fn copied<'a>(&'a self, tags: &'a [&'a [u8]], was_fetched: bool) -> CopiedItem<'a> {
        let head = &self.decoded.head;
        CopiedItem {
            item: NewItem::new(self.decoded.value.clone())
                .flags(head.flags)
                .expires(self.expires)
                .tags(tags),
            cas: head.cas_unique(),
            is_stale: self.is_stale,
            is_won: self.is_won(),
            was_fetched,
        }
    }
}

/// A reply to the reading of one key.
struct Reply {
    version: u64,
    /// The item and the milliseconds until it expires.
    item: Option<(DecodedItem, Option<u64>)>,
}

impl StoreOrigin {
    /// Asks the server for items, and keeps copies of those that may be served. It also remembers
    /// which the server does not have. Takes one trip, and another one for tags that are not known
    /// yet.
    ///
    /// What is returned was true at some moment during the call. It may have changed by now: then
    /// no copy is kept.
    pub async fn load(&self, keys: &[Bytes]) -> Result<Vec<Loaded>, OriginError> {
        let connection = self.connection()?;
        let _permit = self.permit()?;
        add(&self.counters.reads, keys.len() as u64);
        self.load_over(&connection, keys).await.map_err(|error| self.failed(error))
    }

    async fn load_over(
        &self,
        connection: &Connection,
        keys: &[Bytes],
    ) -> Result<Vec<Loaded>, OriginError> {
        let names = &self.config.names;
        let since = self.store.moment();
        let mut commands = redis::pipe();
        commands.ignore_errors();
        // The numbers come first: what is read behind them was not purged under a smaller one
        // unless it shows it.
        commands.cmd("GET").arg(names.number());
        for key in keys {
            let name = names.item(key);
            commands.cmd("GET").arg(&name).cmd("PTTL").arg(&name);
        }
        let replies = connection.ask_all(&commands).await?;
        let (numbers, replies) =
            replies.split_first().ok_or_else(|| unexpected("GET", &Value::Nil))?;
        let numbers = numbers_of(numbers);
        let replies: Vec<Reply> = replies.chunks(2).map(reply_of).collect();
        if replies.len() != keys.len() {
            return Err(OriginError::Unexpected(format!("{} replies", replies.len())));
        }
        if let Some(numbers) = numbers {
            self.numbers.learn(numbers.of_any);
            if numbers.of_prefixes > self.numbers.complete_up_to() {
                self.read_numbers(connection, numbers.of_prefixes).await?;
            }
        }
        let purged_tags = self.read_tags(connection, &replies, &since).await?;
        let now = Now::on_steady_clock();
        let loaded = keys
            .iter()
            .zip(replies)
            .map(|(key, reply)| self.judged(key, reply, numbers, &purged_tags, now));
        let loaded: Vec<Loaded> = loaded.collect();
        for loaded in &loaded {
            self.keep_copy(loaded, &since, now);
        }
        Ok(loaded)
    }

    /// Reads the purges of those tags of the items that are not known.
    async fn read_tags(
        &self,
        connection: &Connection,
        replies: &[Reply],
        since: &Moment,
    ) -> Result<HashMap<Bytes, Purged>, OriginError> {
        let tags: Vec<Bytes> = replies
            .iter()
            .filter_map(|reply| reply.item.as_ref())
            .flat_map(|(item, _)| item.tags())
            .collect();
        let unknown = self.numbers.unknown_tags(tags.iter());
        if unknown.is_empty() {
            return Ok(HashMap::new());
        }
        let mut command = redis::cmd("MGET");
        for tag in &unknown {
            command.arg(self.config.names.tag(tag));
        }
        let reply = connection.ask(&command).await?;
        let Value::Array(values) = &reply else { return Err(unexpected("MGET", &reply)) };
        let mut purged_tags = HashMap::new();
        for (tag, value) in unknown.into_iter().zip(values) {
            // A tag that the server does not have is not known, and kills the item.
            let Value::BulkString(text) = value else { continue };
            let Some(purged) = Purged::parse(text) else { continue };
            self.numbers.learn_tag(&tag, purged);
            if self.store.change_since(since, b"", &[&tag]).is_some() {
                self.numbers.forget_tag(&tag);
            }
            purged_tags.insert(tag, purged);
        }
        Ok(purged_tags)
    }

    /// Decides whether an item may be served. If the server has lost the numbers, none may.
    fn judged(
        &self,
        key: &Bytes,
        reply: Reply,
        numbers: Option<LastNumbers>,
        purged_tags: &HashMap<Bytes, Purged>,
        now: Now,
    ) -> Loaded {
        let made = numbers.map_or(0, |numbers| numbers.of_any);
        let mut loaded = Loaded { key: key.clone(), version: reply.version, made, item: None };
        let (Some((decoded, milliseconds)), Some(_)) = (reply.item, numbers) else { return loaded };
        let tags: Vec<Bytes> = decoded.tags().collect();
        let judgement = self.numbers.judge(key, tags.iter(), purged_tags, decoded.head.made);
        if judgement != Judgement::Dead && !decoded.head.is_tombstone {
            let is_stale = decoded.head.is_stale || judgement == Judgement::Stale;
            let expires = milliseconds.map_or(Expires::NEVER, |milliseconds| {
                // The next full second: an item lives as long as its writer has said.
                Expires::after_seconds(milliseconds.div_ceil(1000), now)
            });
            loaded.item = Some(LoadedItem { decoded, expires, is_stale });
            add(&self.counters.read_hits, 1);
        }
        loaded
    }

    /// Keeps a copy of what was read, or that there is nothing. Neither is kept if a change has
    /// crossed the reply, or if nothing proves it.
    fn keep_copy(&self, loaded: &Loaded, since: &Moment, now: Now) {
        let key = &loaded.key;
        let Some(item) = &loaded.item else {
            self.absent_keys.insert(key);
            if self.store.change_since(since, key, &[]).is_some() {
                self.absent_keys.remove(key);
            }
            return;
        };
        let tags: Vec<Bytes> = item.decoded.tags().collect();
        let tags: Vec<&[u8]> = tags.iter().map(|tag| &tag[..]).collect();
        // A copy is made for a reader, who gets the item from here.
        let is_kept = self.store.keep_copy(key, &item.copied(&tags, true), since, now);
        if !is_kept || !self.store.will_forget() {
            add(&self.counters.copies_refused, 1);
        }
        if is_kept && !self.store.will_forget() {
            self.store.discard(key);
        }
    }
}

/// Takes the replies to `GET` and `PTTL` of one key.
fn reply_of(replies: &[Value]) -> Reply {
    let nothing = Reply { version: 0, item: None };
    let unreadable = Reply { version: UNREADABLE, item: None };
    let [value, left] = replies else { return nothing };
    let encoded = match value {
        Value::Nil => return nothing,
        Value::BulkString(bytes) if bytes.is_empty() => return nothing,
        Value::BulkString(bytes) => Bytes::copy_from_slice(bytes),
        _ => return unreadable,
    };
    match DecodedItem::decode(&encoded) {
        // The key may have expired between the two commands.
        Ok(item) => match left {
            Value::Int(-2) => nothing,
            Value::Int(left) => {
                Reply { version: item.head.version, item: Some((item, u64::try_from(*left).ok())) }
            }
            _ => unreadable,
        },
        Err(error) => {
            if !matches!(error, DecodeError::UnknownFormat(_)) {
                tracing::debug!(%error, "the origin has an item that cannot be read");
            }
            unreadable
        }
    }
}
