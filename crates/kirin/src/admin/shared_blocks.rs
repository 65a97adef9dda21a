//! The addresses that operators block on all machines with the same origin.
//!
//! They are a record on the origin: a JSON object with the end of each block in seconds since 1970.
//! Each machine waits for changes of it, so a block holds within a trip, and also on machines that
//! start later. While the origin is away, the blocks that a machine knows go on to their ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kirin_clock::wall_seconds;
use kirin_config::parse_network;
use kirin_origin::{NearStore, RECORD_LIMIT_BYTES, StoreOrigin};
use kirin_server::{Block, BlockedAddresses, MAX_BLOCKS, TooManyBlocks};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::blocks_change::MAX_TIME;

/// The name of the record.
const RECORD: &[u8] = b"blocks";

/// How often a change begins again because another machine has made one.
const TRIES: usize = 10;

/// The pause after an answer that has not come.
const PAUSE: Duration = Duration::from_secs(1);

/// The networks that are blocked, and when the blocks end, in seconds since 1970.
#[derive(Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SharedBlocks(BTreeMap<String, u64>);

impl SharedBlocks {
    /// Blocks a network for a time from now on. It replaces a block of the same network.
    pub fn block(&mut self, network: String, time: Duration) {
        self.0.insert(network, wall_seconds().saturating_add(time.as_secs()));
    }

    /// Ends the block of exactly this network. Returns whether there was one.
    pub fn unblock(&mut self, network: &str) -> bool {
        self.0.remove(network).is_some()
    }

    /// Reads a record, without the blocks that have ended.
    fn parse(record: Option<&[u8]>) -> Result<Self, serde_json::Error> {
        let Some(record) = record else { return Ok(Self::default()) };
        let mut blocks: Self = serde_json::from_slice(record)?;
        let now = wall_seconds();
        blocks.0.retain(|_, end| *end > now);
        Ok(blocks)
    }

    /// Returns the record. `None`: there is nothing to write.
    fn to_record(&self) -> Result<Option<Vec<u8>>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        if self.0.len() > MAX_BLOCKS {
            return Err(TooManyBlocks.to_string());
        }
        let record = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        if record.len() > RECORD_LIMIT_BYTES {
            return Err(format!(
                "{} networks are blocked on all machines already, and no more fit into the {} KB \
                 that the origin may have of them: block larger networks",
                self.0.len() - 1,
                RECORD_LIMIT_BYTES >> 10
            ));
        }
        Ok(Some(record))
    }

    /// Returns how long the last of the blocks lasts still.
    fn lasting(&self) -> Option<Duration> {
        let last = self.0.values().max()?;
        Some(Duration::from_secs(last.saturating_sub(wall_seconds())))
    }

    /// Returns the blocks by the clock of this machine. What another version has written and this
    /// one does not understand is left out.
    fn to_blocks(&self) -> Vec<Block> {
        let (now, seconds) = (Instant::now(), wall_seconds());
        let mut blocks: Vec<Block> = self
            .0
            .iter()
            .filter_map(|(network, end)| {
                let left = Duration::from_secs(end.saturating_sub(seconds)).min(MAX_TIME);
                Some(Block { network: parse_network(network).ok()?, end: now + left })
            })
            .take(MAX_BLOCKS)
            .collect();
        blocks.sort_by_key(|block| block.network);
        blocks
    }
}

/// Changes the blocks of all machines, on this one at once. The error says what was not done.
pub async fn change(
    near: &NearStore,
    blocked: &BlockedAddresses,
    change: impl Fn(&mut SharedBlocks) -> Result<(), String>,
) -> Result<(), String> {
    let Some(origin) = near.origin() else {
        return Err("`--all` needs `store.origin`, which all machines have in common".into());
    };
    for _ in 0..TRIES {
        let old = origin.read_record(RECORD).await.map_err(|error| error.to_string())?;
        let mut blocks = SharedBlocks::parse(old.as_deref())
            .map_err(|error| format!("the origin has blocks that Kirin cannot read: {error}"))?;
        change(&mut blocks)?;
        let new = blocks.to_record()?;
        let replaced =
            origin.replace_record(RECORD, old.as_deref(), new.as_deref(), blocks.lasting()).await;
        if replaced.map_err(|error| error.to_string())? {
            blocked.replace_shared(blocks.to_blocks());
            return Ok(());
        }
    }
    Err("other machines change their blocks at the same moment: try again".into())
}

/// Blocks what the origin says from now on. It never returns.
pub async fn follow(origin: &StoreOrigin, blocked: &BlockedAddresses) {
    let mut changes = origin.watch_record(RECORD);
    loop {
        changes.mark_unchanged();
        match origin.read_record(RECORD).await {
            Ok(record) => {
                match SharedBlocks::parse(record.as_deref()) {
                    Ok(blocks) => blocked.replace_shared(blocks.to_blocks()),
                    Err(error) => {
                        tracing::error!(%error, "the blocks on the origin cannot be read");
                    }
                }
                _ = changes.changed().await;
            }
            // A new connection is a change. An answer may be late without one.
            Err(_) => _ = timeout(PAUSE, changes.changed()).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let mut blocks = SharedBlocks::default();
        assert_eq!(blocks.to_record(), Ok(None));
        assert_eq!(blocks.lasting(), None);
        for network in ["192.0.2.7", "10.0.0.0/8", "2001:db8::/32"] {
            blocks.block(network.into(), HOUR);
        }
        blocks.block("192.0.2.7".into(), 2 * HOUR);
        let record = blocks.to_record().unwrap().unwrap();
        assert_eq!(SharedBlocks::parse(Some(&record)).unwrap(), blocks);
        let lasting = blocks.lasting().unwrap();
        assert!(lasting > HOUR && lasting <= 2 * HOUR, "{lasting:?}");
        let networks: Vec<_> =
            blocks.to_blocks().iter().map(|block| block.network.to_string()).collect();
        assert_eq!(networks, ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"]);
        assert!(blocks.unblock("10.0.0.0/8") && !blocks.unblock("10.0.0.0/8"));
        assert_eq!(blocks.to_blocks().len(), 2);
    }

    #[test]
    fn what_has_ended_or_is_not_known_blocks_nobody() {
        let record = br#"{"10.0.0.1": 1, "10.0.0.2": 18446744073709551615, "a name": 9999999999}"#;
        let blocks = SharedBlocks::parse(Some(record)).unwrap();
        assert_eq!(blocks.0.len(), 2);
        let known = blocks.to_blocks();
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].network.to_string(), "10.0.0.2/32");
        assert!(known[0].end <= Instant::now() + MAX_TIME);
        assert!(SharedBlocks::parse(Some(b"[]")).is_err());
    }

    #[test]
    fn the_blocks_of_all_machines_have_two_limits() {
        let mut blocks = SharedBlocks::default();
        for number in 0..=MAX_BLOCKS {
            blocks.block(format!("{number}"), HOUR);
        }
        let error = blocks.to_record().unwrap_err();
        assert!(error.contains("10000 networks are blocked already"), "{error}");
        let mut blocks = SharedBlocks::default();
        for number in 0..6000 {
            blocks.block(format!("2001:db8:1000:2000:3000:4000:{number:x}:0/112"), HOUR);
        }
        let error = blocks.to_record().unwrap_err();
        assert!(error.contains("5999 networks") && error.contains("256 KB"), "{error}");
    }
}
