//! Purges in a cluster, where a script changes the keys of one slot.
//!
//! A purge first chooses a number that is greater than any that the cluster shows. Then it purges
//! each tag and each item under it, on the server of the name. At last it notes the number and the
//! prefixes on the server of the numbers, and is done.
//!
//! # Why the number comes last
//!
//! Who changes an item, or makes a page of items, does so under a number that was read before them.
//! A later purge of what was read must have a greater number. If the number came first, somebody
//! could read it, then an item whose tag is not purged yet, and write what was made of it under the
//! same number: that would outlive the purge.
//!
//! With the number at the end, all names are purged when it can be read. If the server has an equal
//! or greater number by then, because another purge was faster, somebody may have read that too
//! early. So all names are purged again, under a number that is greater still.

use futures_util::future::try_join_all;
use kirin_store::Invalidation;

use crate::engine_scripts::{PURGE_NAME, PURGE_NUMBERS};
use crate::error::OriginError;
use crate::origin::StoreOrigin;
use crate::purging::{Purge, PurgeFound, word};
use crate::replies::{counts, micros_of, numbers_of, unexpected};
use crate::servers::Servers;

/// How often all names are purged while other purges are faster.
const TRIES: usize = 16;

/// What a name is that is purged.
#[derive(Clone, Copy)]
enum Kind {
    CountedTag,
    OtherTag,
    Item,
}

impl StoreOrigin {
    /// Purges. Returns the number of the purge, too.
    pub(crate) async fn purge_in_cluster(
        &self,
        servers: &Servers,
        purge: &Purge<'_>,
        how: Invalidation,
    ) -> Result<(u64, PurgeFound), OriginError> {
        let (mut number, now) = self.choose_number(servers).await?;
        let mut found = None;
        for _ in 0..TRIES {
            // What is found again was purged by this purge.
            let first_found = self.purge_names(servers, purge, how, number, now).await?;
            let found = *found.get_or_insert(first_found);
            let [is_done, next] = self.note_number(servers, purge, how, number).await?;
            if is_done == 1 {
                self.numbers.learn(number);
                return Ok((number, found));
            }
            number = next;
        }
        Err(OriginError::Contended)
    }

    /// Returns a number that is greater than any that the cluster shows, and the time of the server
    /// that has the numbers in microseconds.
    async fn choose_number(&self, servers: &Servers) -> Result<(u64, u64), OriginError> {
        let mut commands = redis::pipe();
        commands.ignore_errors().cmd("GET").arg(self.config.names.number()).cmd("TIME");
        let replies = servers.first.ask_all(&commands).await?;
        let [number, time] = replies.as_slice() else {
            return Err(OriginError::Unexpected(format!("{} replies for 2", replies.len())));
        };
        let now = micros_of(time).ok_or_else(|| unexpected("TIME", time))?;
        let last = numbers_of(number).unwrap_or_default().of_any;
        Ok((now.max(last + 1), now))
    }

    /// Purges all tags and items under a number. The versions that items get are those of the one
    /// clock that all versions come from, not of a server's own.
    async fn purge_names(
        &self,
        servers: &Servers,
        purge: &Purge<'_>,
        how: Invalidation,
        number: u64,
        now: u64,
    ) -> Result<PurgeFound, OriginError> {
        let names = &self.config.names;
        let tags = purge.tags.iter().map(|tag| (Kind::CountedTag, names.tag(tag)));
        let other_tags = purge.other_tags.iter().map(|tag| (Kind::OtherTag, names.tag(tag)));
        let items = purge.keys.iter().map(|key| (Kind::Item, names.item(key)));
        let (number, now) = (number.to_string(), now.to_string());
        let purged = tags.chain(other_tags).chain(items).map(async |(kind, name)| {
            let what: &[u8] = if matches!(kind, Kind::Item) { b"item" } else { b"tag" };
            let arguments = [word(how), what, number.as_bytes(), now.as_bytes()];
            let server = servers.of(&name);
            let [is_there, version] = counts(&server.run(PURGE_NAME, &[name], &arguments).await?)?;
            Ok((kind, is_there, version))
        });
        let mut found = PurgeFound::default();
        for (kind, is_there, version) in try_join_all(purged).await? {
            self.has_seen(version);
            match kind {
                Kind::CountedTag => found.tags += is_there,
                Kind::Item => found.items += is_there,
                Kind::OtherTag => {}
            }
        }
        Ok(found)
    }

    /// Notes the number and the prefixes. Returns whether that is done, and a greater number if
    /// not.
    async fn note_number(
        &self,
        servers: &Servers,
        purge: &Purge<'_>,
        how: Invalidation,
        number: u64,
    ) -> Result<[u64; 2], OriginError> {
        let names = &self.config.names;
        let keys = [names.number().to_vec(), names.purges().to_vec()];
        let number = number.to_string();
        let mut arguments = vec![word(how), number.as_bytes()];
        arguments.extend(purge.prefixes);
        counts(&servers.first.run(PURGE_NUMBERS, &keys, &arguments).await?)
    }
}
