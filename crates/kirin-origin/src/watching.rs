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
use crate::servers::Servers;

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
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let (values, number) = self.read_watched(&servers, tags).await?;
        let numbers = numbers_of(&number).ok_or_else(|| unexpected("GET", &number))?;
        self.numbers.learn(numbers.of_any);
        if numbers.of_prefixes > self.numbers.complete_up_to() {
            self.read_numbers(&servers, numbers.of_prefixes).await?;
        }
        let is_later = numbers.of_any > begin.number;
        // In a cluster a tag may show a purge before the numbers do.
        if !is_later && !servers.is_cluster() {
            return Ok(true);
        }
        let is_untouched = |value: &Value| match value {
            Value::BulkString(text) => Purged::parse(text)
                .is_some_and(|purged| purged.hard.max(purged.soft) <= begin.number),
            // A server that may evict tags may have evicted one that was purged.
            Value::Nil => !is_later || !servers.evicts(),
            _ => false,
        };
        Ok(values.iter().take(tags.len()).all(is_untouched))
    }

    /// Reads tags, and then the number: a purge between the two is reported, because the tags have
    /// been read.
    async fn read_watched(
        &self,
        servers: &Servers,
        tags: &[&[u8]],
    ) -> Result<(Vec<Value>, Value), OriginError> {
        let names = &self.config.names;
        let tag_names: Vec<Vec<u8>> = tags.iter().map(|tag| names.tag(tag)).collect();
        let mut number = redis::cmd("GET");
        number.arg(names.number());
        if servers.is_cluster() {
            let values = servers.get_all(tag_names).await?;
            return Ok((values, servers.first.ask(&number).await?));
        }
        let mut commands = redis::pipe();
        commands.ignore_errors().cmd("MGET").arg(tag_names).add_command(number);
        let replies = servers.first.ask_all(&commands).await?;
        match <[Value; 2]>::try_from(replies) {
            Ok([Value::Array(values), number]) => Ok((values, number)),
            Ok([reply, _]) => Err(unexpected("MGET", &reply)),
            Err(replies) => {
                Err(OriginError::Unexpected(format!("{} replies for 2", replies.len())))
            }
        }
    }
}
