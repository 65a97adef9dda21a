//! Reads items from the server, and keeps copies of them in the store.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::future::try_join_all;
use kirin_store::{CopiedItem, Expires, ItemRef, Moment, NewItem, Now, Store};
use redis::Value;

use crate::counters::add;
use crate::encoding::{DecodeError, DecodedItem, LastNumbers, Purged, UNREADABLE};
use crate::error::OriginError;
use crate::expiry::expiry;
use crate::numbers::Judgement;
use crate::origin::StoreOrigin;
use crate::replies::numbers_of;
use crate::servers::Servers;

/// What the server has under a key.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The key.
    pub key: Bytes,
    /// The version of what is there, be it an item that may be served or not. 0 if nothing is.
    pub version: u64,
    /// Whether nobody gets an item before the key is written: there is nothing, a tombstone or an
    /// item that was purged.
    pub is_absent: bool,
    /// The number of the last purge that has been looked at. In a cluster it may be a smaller one.
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
    /// The CAS unique. That of an item that a purge has made stale is another one than before.
    pub cas: u64,
    /// Whether the item is stale, by a mark of its own or by a purge.
    pub is_stale: bool,
    /// Whether a client has won the right to recache the item. A purge that makes an item stale
    /// takes that back.
    pub is_won: bool,
}

impl LoadedItem {
    /// Keeps a copy of the item in a store, as [`Store::keep_copy`] does. `was_fetched` is what the
    /// store shows of earlier reads.
    pub fn keep_in(
        &self,
        store: &Store,
        key: &[u8],
        was_fetched: bool,
        since: &Moment,
        now: Now,
    ) -> bool {
        self.with_copy(was_fetched, |copy| store.keep_copy(key, copy, since, now))
    }

    /// Returns the item for a reader, without a store.
    pub fn detached(&self, key: &[u8], now: Now) -> ItemRef {
        self.with_copy(true, |copy| copy.detached(key, now))
    }

    fn with_copy<R>(&self, was_fetched: bool, work: impl FnOnce(&CopiedItem<'_>) -> R) -> R {
        let tags: Vec<Bytes> = self.decoded.tags().collect();
        let tags: Vec<&[u8]> = tags.iter().map(|tag| &tag[..]).collect();
        let item = NewItem::new(self.decoded.value.clone())
            .flags(self.decoded.head.flags)
            .expires(self.expires)
            .tags(&tags);
        let (cas, is_stale, is_won) = (self.cas, self.is_stale, self.is_won);
        work(&CopiedItem { item, cas, is_stale, is_won, was_fetched })
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
    /// yet. In a cluster the numbers take a trip of their own before.
    ///
    /// What is returned was true at some moment during the call. It may have changed by now: then
    /// no copy is kept.
    pub async fn load(&self, keys: &[Bytes]) -> Result<Vec<Loaded>, OriginError> {
        // It comes before the connection: what is read over one that is replaced is not kept.
        let since = self.store.moment();
        let servers = self.servers()?;
        let _permit = self.permit_to_read(keys.len()).await?;
        add(&self.counters.reads, keys.len() as u64);
        self.load_from(&servers, keys, &since).await.map_err(|error| self.failed(error))
    }

    async fn load_from(
        &self,
        servers: &Servers,
        keys: &[Bytes],
        since: &Moment,
    ) -> Result<Vec<Loaded>, OriginError> {
        let names = &self.config.names;
        // What is proven before the reading is proven for the tags that are known.
        let proven = servers.proven();
        let parts = servers.divide(keys.iter().enumerate(), |(_, key)| names.item(key));
        // The numbers come first: what is read behind them was not purged under a smaller one
        // unless it shows it.
        let mut number = Vec::new();
        let is_one_trip = matches!(&*parts, [(server, _)] if std::ptr::eq(*server, &servers.first));
        if !is_one_trip {
            let mut commands = redis::pipe();
            commands.ignore_errors().cmd("GET").arg(names.number());
            number = servers.first.ask_all(&commands).await?;
        }
        let asked = parts.iter().map(async |(server, part)| {
            let mut commands = redis::pipe();
            commands.ignore_errors();
            if is_one_trip {
                commands.cmd("GET").arg(names.number());
            }
            for (_, key) in part {
                let name = names.item(key);
                commands.cmd("GET").arg(&name).cmd("PTTL").arg(&name);
            }
            server.ask_all(&commands).await
        });
        let mut replies: Vec<Option<Reply>> = keys.iter().map(|_| None).collect();
        for ((_, part), answers) in parts.iter().zip(try_join_all(asked).await?) {
            let mut answers = answers.into_iter();
            if is_one_trip {
                number.extend(answers.next());
            }
            for (index, _) in part {
                if let (Some(reply), Some(value), Some(left)) =
                    (replies.get_mut(*index), answers.next(), answers.next())
                {
                    *reply = Some(reply_of(value, &left));
                }
            }
        }
        let numbers = number.first().and_then(numbers_of);
        let replies: Option<Vec<Reply>> = replies.into_iter().collect();
        let replies = replies.ok_or_else(|| OriginError::Unexpected("too few replies".into()))?;
        if let Some(numbers) = numbers {
            self.numbers.learn(numbers.of_any);
            if numbers.of_prefixes > self.numbers.complete_up_to() {
                self.read_numbers(servers, numbers.of_prefixes).await?;
            }
        }
        let purged_tags = self.read_tags(servers, &replies, since).await?;
        let now = Now::on_steady_clock();
        let loaded = keys
            .iter()
            .zip(replies)
            .map(|(key, reply)| self.judged(key, reply, numbers, &purged_tags, now));
        let mut loaded: Vec<Loaded> = loaded.collect();
        for loaded in &mut loaded {
            if servers.is_cluster() {
                // A later purge of a tag may not have been reported yet.
                loaded.made = loaded.made.min(proven);
            }
            self.has_seen(loaded.version);
            self.keep_copy(loaded, since, now);
        }
        Ok(loaded)
    }

    /// Returns the purges of the tags of the items. Reads those that are not known.
    async fn read_tags(
        &self,
        servers: &Servers,
        replies: &[Reply],
        since: &Moment,
    ) -> Result<HashMap<Bytes, Purged>, OriginError> {
        let tags: Vec<Bytes> = replies
            .iter()
            .filter_map(|reply| reply.item.as_ref())
            .flat_map(|(item, _)| item.tags())
            .collect();
        let (mut purged_tags, unknown) = self.numbers.look_up(tags.iter());
        if unknown.is_empty() {
            return Ok(purged_tags);
        }
        let names = unknown.iter().map(|tag| self.config.names.tag(tag)).collect();
        let values = servers.get_all(names).await?;
        for (tag, value) in unknown.into_iter().zip(values) {
            // An item with a tag that the server does not have is not served.
            let Value::BulkString(text) = value else { continue };
            let Some(purged) = Purged::parse(&text) else { continue };
            let has_changed = || self.store.change_since(since, b"", &[&tag]).is_some();
            self.numbers.learn_tag(&tag, purged, has_changed);
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
        let LastNumbers { of_any, of_prefixes } = numbers.unwrap_or_default();
        let is_absent = reply.version == 0
            || reply.item.as_ref().is_some_and(|(item, _)| item.head.is_tombstone);
        let mut loaded = Loaded {
            key: key.clone(),
            version: reply.version,
            is_absent,
            made: of_any,
            item: None,
        };
        let (Some((decoded, milliseconds)), Some(_)) = (reply.item, numbers) else { return loaded };
        if is_absent {
            return loaded;
        }
        let (head, tags) = (decoded.head, decoded.tags().collect::<Vec<Bytes>>());
        let judgement = self.numbers.judge(key, tags.iter(), purged_tags, head.made, of_prefixes);
        let (cas, is_stale, is_won) = match judgement {
            Judgement::Dead => return Loaded { is_absent: true, ..loaded },
            Judgement::Unproven => return loaded,
            Judgement::Fresh => (head.cas_unique(), head.is_stale, head.is_won),
            // The purge has come after the numbers were read, so the item may be an older one.
            Judgement::Stale { since } if since > of_any => (head.cas_unique(), true, false),
            // All machines get the same odd number. Versions are even.
            Judgement::Stale { since } => (since.max(head.version + 1) | 1, true, false),
        };
        let expires = milliseconds.map_or(Expires::NEVER, |milliseconds| expiry(milliseconds, now));
        loaded.item = Some(LoadedItem { decoded, expires, cas, is_stale, is_won });
        add(&self.counters.read_hits, 1);
        loaded
    }

    /// Keeps a copy of what was read, or that there is nothing. Neither is kept if a change has
    /// crossed the reply, or if nothing proves it.
    fn keep_copy(&self, loaded: &Loaded, since: &Moment, now: Now) {
        let key = &loaded.key;
        if loaded.is_absent {
            self.absent_keys.insert(key);
            if self.store.change_since(since, key, &[]).is_some() {
                self.absent_keys.remove(key);
            }
        }
        let Some(item) = &loaded.item else { return };
        // A copy is made for a reader, who gets the item from here.
        let is_kept = item.keep_in(&self.store, key, true, since, now);
        if is_kept && self.store.will_forget() {
            return;
        }
        add(&self.counters.copies_refused, 1);
        if is_kept {
            self.store.discard(key);
        }
    }
}

/// Takes the replies to `GET` and `PTTL` of one key.
fn reply_of(value: Value, left: &Value) -> Reply {
    let nothing = Reply { version: 0, item: None };
    let unreadable = Reply { version: UNREADABLE, item: None };
    let encoded = match value {
        Value::Nil => return nothing,
        Value::BulkString(bytes) if bytes.is_empty() => return nothing,
        Value::BulkString(bytes) => Bytes::from(bytes),
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
