//! Writes items in a cluster, where a script changes the keys of one slot.
//!
//! A write has three parts, each on the server of its keys: the numbers say under which number the
//! item is made, the tags are created or kept, and then the item is written. No transaction over
//! slots is needed. A purge between the parts has a greater number than the item is made under, so
//! the item is dead wherever it is read, and nobody needs to notice that while writing it. A tag
//! that is kept for an item that is not written after all does no harm.
//!
//! The numbers show a purge only when it has reached all names (`cluster_purging.rs`). So a tag may
//! have a greater number than they do. An item with that tag would be dead until they do, and for
//! ever if the Kirin that has begun the purge has ended. So whoever finds such a tag raises the
//! numbers. The purge then gets another number, so it loses nothing.

use futures_util::future::try_join_all;

use crate::encoding::Purged;
use crate::engine_scripts::{PUT_ITEM, PUT_NUMBERS, PUT_TAG};
use crate::error::OriginError;
use crate::origin::StoreOrigin;
use crate::replies::{counts, unexpected};
use crate::servers::Servers;
use crate::writing::{WriteOrder, Written, evicts, written};

impl StoreOrigin {
    /// Writes part by part. Returns the present number of purges and the version that is there,
    /// too.
    pub(crate) async fn write_in_cluster(
        &self,
        servers: &Servers,
        order: &WriteOrder<'_>,
    ) -> Result<(Written, u64, u64), OriginError> {
        let name = self.config.names.item(order.key);
        let (mut number, mut made, is_purged) = self.number_for(servers, order, &name, 0).await?;
        if is_purged {
            return Ok((Written::Purged { version: 0 }, number, 0));
        }
        if !order.tags.is_empty() {
            let left = self.milliseconds_of_tags(servers, order, &name).await?;
            let kept = self.keep_tags(servers, order.tags, &number.to_string(), &left).await?;
            let greatest = |purged: &Purged| purged.hard.max(purged.soft);
            let least = kept.iter().map(greatest).max().unwrap_or_default();
            if least > number {
                let is_purged;
                (number, made, is_purged) = self.number_for(servers, order, &name, least).await?;
                if is_purged {
                    return Ok((Written::Purged { version: 0 }, number, 0));
                }
            }
            let is_purged = |purged: &Purged| {
                purged.hard > made || order.condition != "any" && purged.soft > made
            };
            if kept.iter().any(is_purged) {
                return Ok((Written::Purged { version: 0 }, number, 0));
            }
        }
        let encoded = order.encoded(made)?;
        let (made_text, milliseconds) = (order.made_text(), order.milliseconds_text());
        let arguments = [
            order.condition.as_bytes(),
            order.expected.as_bytes(),
            made_text.as_bytes(),
            milliseconds.as_bytes(),
            encoded.as_bytes(),
        ];
        let server = servers.of(&name);
        let [status, version] = counts(&server.run(PUT_ITEM, &[name], &arguments).await?)?;
        Ok((written(status, version), number, version))
    }

    /// Returns the present number of purges, which is raised to `least`, the number that the item
    /// is made under, and whether a flush or a purge of a prefix is in its way.
    async fn number_for(
        &self,
        servers: &Servers,
        order: &WriteOrder<'_>,
        name: &[u8],
        least: u64,
    ) -> Result<(u64, u64, bool), OriginError> {
        let names = &self.config.names;
        let keys = [names.number().to_vec(), names.purges().to_vec()];
        let (made_text, least) = (order.made_text(), least.to_string());
        let arguments = [order.condition.as_bytes(), made_text.as_bytes(), name, least.as_bytes()];
        let [number, made, is_purged] =
            counts(&servers.first.run(PUT_NUMBERS, &keys, &arguments).await?)?;
        Ok((number, made, is_purged == 1))
    }

    /// Returns the milliseconds that the tags of an item must outlive.
    async fn milliseconds_of_tags(
        &self,
        servers: &Servers,
        order: &WriteOrder<'_>,
        name: &[u8],
    ) -> Result<String, OriginError> {
        if let Some(milliseconds) = order.milliseconds {
            return Ok(milliseconds.to_string());
        }
        let mut command = redis::cmd("PTTL");
        command.arg(name);
        match servers.of(name).ask(&command).await? {
            // An item that has gone fails its condition.
            redis::Value::Int(left) => Ok(left.max(0).to_string()),
            reply => Err(unexpected("PTTL", &reply)),
        }
    }

    /// Lets tags outlive an item that expires after `milliseconds`. Absent ones are created if
    /// there is a present number of purges. Returns the numbers of the tags.
    pub(crate) async fn keep_tags(
        &self,
        servers: &Servers,
        tags: &[&[u8]],
        number: &str,
        milliseconds: &str,
    ) -> Result<Vec<Purged>, OriginError> {
        let kept = tags.iter().map(async |tag| {
            let name = self.config.names.tag(tag);
            let server = servers.of(&name);
            let arguments = [number.as_bytes(), evicts(server), milliseconds.as_bytes()];
            let [hard, soft] = counts(&server.run(PUT_TAG, &[name], &arguments).await?)?;
            Ok(Purged { hard, soft })
        });
        try_join_all(kept).await
    }
}
