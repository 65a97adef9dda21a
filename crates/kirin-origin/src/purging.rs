//! Purges keys, tags and prefixes on the server: one write, however many items that makes invalid.

use std::sync::Arc;

use kirin_store::{Invalidation, Now};

use crate::counters::add;
use crate::engine_scripts::PURGE;
use crate::error::OriginError;
use crate::origin::StoreOrigin;
use crate::replies::counts;
use crate::servers::Servers;

/// What is to be purged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Purge<'a> {
    /// Keys of items.
    pub keys: &'a [&'a [u8]],
    /// Tags.
    pub tags: &'a [&'a [u8]],
    /// Tags that are not counted.
    pub other_tags: &'a [&'a [u8]],
    /// Prefixes of keys. The empty one purges all items.
    pub prefixes: &'a [&'a [u8]],
}

/// What a purge has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeFound {
    /// The number of items under the keys.
    pub items: u64,
    /// The number of tags that items carry, or have carried lately.
    pub tags: u64,
}

impl Purge<'_> {
    /// Returns whether there is anything beside prefixes.
    fn has_names(&self) -> bool {
        !(self.keys.is_empty() && self.tags.is_empty() && self.other_tags.is_empty())
    }
}

/// Returns the word of the scripts.
pub(crate) fn word(how: Invalidation) -> &'static [u8] {
    match how {
        Invalidation::Hard => b"hard",
        Invalidation::Soft => b"soft",
    }
}

impl StoreOrigin {
    /// Purges. When this returns, this machine has no copy of it, and the server has done all of
    /// it, unless it is an error.
    pub async fn purge(
        &self,
        purge: &Purge<'_>,
        how: Invalidation,
        now: Now,
    ) -> Result<PurgeFound, OriginError> {
        let purged = self.purge_on_server(purge, how).await;
        // Also after an error: the server may have done it, and this machine can.
        for key in purge.keys {
            self.key_has_changed(key);
        }
        for tag in purge.tags.iter().chain(purge.other_tags) {
            self.store.invalidate_tag(tag, Invalidation::Hard);
            self.numbers.forget_tag(tag);
        }
        for prefix in purge.prefixes {
            self.prefix_was_purged(prefix, now);
        }
        let (servers, found) = purged?;
        if servers.is_cluster() {
            // What is begun from now on is younger than the purge, which is done in any case.
            let _ = tokio::time::timeout(self.config.timeout, self.prove(&servers)).await;
        }
        Ok(found)
    }

    async fn purge_on_server(
        &self,
        purge: &Purge<'_>,
        how: Invalidation,
    ) -> Result<(Arc<Servers>, PurgeFound), OriginError> {
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let purged = self.purge_over(&servers, purge, how).await;
        let (_, found) = purged.map_err(|error| self.failed(error))?;
        Ok((servers, found))
    }

    /// Purges all items.
    pub(crate) async fn purge_everything(&self, servers: &Servers) -> Result<(), OriginError> {
        let all = Purge { prefixes: &[b""], ..Purge::default() };
        let (number, _) = self.purge_over(servers, &all, Invalidation::Hard).await?;
        self.numbers.begin_at(number);
        Ok(())
    }

    async fn purge_over(
        &self,
        servers: &Servers,
        purge: &Purge<'_>,
        how: Invalidation,
    ) -> Result<(u64, PurgeFound), OriginError> {
        add(&self.counters.purges, 1);
        // Prefixes are where the numbers are.
        if servers.is_cluster() && purge.has_names() {
            return self.purge_in_cluster(servers, purge, how).await;
        }
        let names = &self.config.names;
        let mut keys = vec![names.number().to_vec(), names.purges().to_vec()];
        keys.extend(purge.tags.iter().chain(purge.other_tags).map(|tag| names.tag(tag)));
        keys.extend(purge.keys.iter().map(|key| names.item(key)));
        let counted = purge.tags.len().to_string();
        let tag_count = (purge.tags.len() + purge.other_tags.len()).to_string();
        let mut arguments = vec![word(how), tag_count.as_bytes(), counted.as_bytes()];
        arguments.extend(purge.prefixes);
        let [number, items, tags, version] =
            counts(&servers.first.run(PURGE, &keys, &arguments).await?)?;
        self.numbers.learn(number);
        self.has_seen(version);
        Ok((number, PurgeFound { items, tags }))
    }
}
