//! Watches tags: their purges reach items that only this machine has.
//!
//! Responses in the cache of a route are not on the server. A purge on another machine reaches them
//! because the server reports each change of a key that was read. So the tags of such an item are
//! read before it is kept, even those that the server does not have.

use redis::Value;

use crate::encoding::Purged;
use crate::error::OriginError;
use crate::near_store::{Begun, NearStore};
use crate::origin::StoreOrigin;
use crate::page_begin::PageBegin;
use crate::replies::{numbers_of, unexpected};

impl NearStore {
    /// Watches the tags of an item that was begun at `begun`. Returns whether nothing that they
    /// name has been purged since. From now on, each of their purges reaches this store.
    ///
    /// If there is no server behind the store, there is nothing to watch.
    pub async fn watch(&self, tags: &[&[u8]], begun: &Begun) -> Result<bool, OriginError> {
        let (Some(origin), Some(begin)) = (&self.origin, begun.page) else { return Ok(true) };
        let watched = origin.watch(tags, begin).await;
        watched.map_err(|error| origin.failed(error))
    }
}

impl StoreOrigin {
    async fn watch(&self, tags: &[&[u8]], begin: PageBegin) -> Result<bool, OriginError> {
        let connection = self.connection()?;
        let _permit = self.permit()?;
        let names = &self.config.names;
        let mut commands = redis::pipe();
        commands.ignore_errors();
        let command = commands.cmd("MGET");
        for tag in tags {
            command.arg(names.tag(tag));
        }
        // The number comes second: a purge between the two is reported, because the tags have been
        // read.
        command.cmd("GET").arg(names.number());
        let replies = connection.ask_all(&commands).await?;
        let [Value::Array(values), number] = replies.as_slice() else {
            return Err(OriginError::Unexpected(format!("{} replies for 2", replies.len())));
        };
        let numbers = numbers_of(number).ok_or_else(|| unexpected("GET", number))?;
        self.numbers.learn(numbers.of_any);
        if numbers.of_prefixes > self.numbers.complete_up_to() {
            self.read_numbers(&connection, numbers.of_prefixes).await?;
        }
        if numbers.of_any <= begin.number {
            return Ok(true);
        }
        let is_untouched = |value: &Value| match value {
            Value::BulkString(text) => Purged::parse(text)
                .is_some_and(|purged| purged.hard.max(purged.soft) <= begin.number),
            // A server that may evict tags may have evicted one that was purged.
            Value::Nil => !connection.facts.evicts,
            _ => false,
        };
        Ok(values.iter().take(tags.len()).all(is_untouched))
    }
}
