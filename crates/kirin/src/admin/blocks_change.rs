//! The addresses that operators block and unblock.

use std::time::{Duration, Instant};

use kirin_config::{Seconds, parse_network};
use kirin_server::{Block, network_name};
use serde::Deserialize;

use super::{AdminParts, shared_blocks};

/// The longest time of a block. Longer ones belong into the configuration.
pub const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Blocks a network for a time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    /// An address, or a network such as `10.0.0.0/8`.
    network: String,
    /// How long.
    time: Seconds,
    /// Whether it is for all machines with the same origin.
    #[serde(default)]
    all: bool,
}

/// Ends a block before its time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnblockRequest {
    /// The network, as it was blocked.
    network: String,
    /// Whether the block was for all machines with the same origin.
    #[serde(default)]
    all: bool,
}

impl BlockRequest {
    /// Makes the change. Returns what was done, or a message for the operator.
    pub async fn apply(&self, parts: &AdminParts) -> Result<String, String> {
        let network = parse_network(&self.network).map_err(|error| error.to_string())?;
        let time = Duration::from_secs(self.time.0);
        if time > MAX_TIME {
            return Err(format!(
                "a block of {} is too long: allowed are 365d; `allow` and `deny` of routes refuse clients for good",
                self.time
            ));
        }
        let (name, blocked) = (network_name(network), &parts.observed.blocked);
        let machines = if self.all { " on all machines" } else { "" };
        if self.all {
            let change = |blocks: &mut shared_blocks::SharedBlocks| {
                blocks.block(name.clone(), time);
                Ok(())
            };
            shared_blocks::change(&parts.near, blocked, change).await?;
        } else {
            blocked.block(network, time, Instant::now()).map_err(|error| error.to_string())?;
        }
        tracing::info!("{name} is blocked for {}{machines}, by an operator", self.time);
        Ok(format!("{name} is blocked for {}{machines}\n", self.time))
    }
}

impl UnblockRequest {
    /// Makes the change. Returns what was done, or a message for the operator.
    pub async fn apply(&self, parts: &AdminParts) -> Result<String, String> {
        let network = parse_network(&self.network).map_err(|error| error.to_string())?;
        let (name, now, blocked) = (network_name(network), Instant::now(), &parts.observed.blocked);
        if self.all {
            let change = |blocks: &mut shared_blocks::SharedBlocks| match blocks.unblock(&name) {
                true => Ok(()),
                false => Err(format!("{name} is not blocked on all machines")),
            };
            shared_blocks::change(&parts.near, blocked, change).await?;
            tracing::info!("{name} is no longer blocked on all machines, by an operator");
            let is_here = blocked.list(now).iter().any(|block| block.network == network);
            let here = if is_here { "; this machine still blocks it for itself" } else { "" };
            return Ok(format!("{name} is no longer blocked on all machines{here}\n"));
        }
        if blocked.unblock(network, now) {
            tracing::info!("{name} is no longer blocked, by an operator");
            return Ok(format!("{name} is no longer blocked\n"));
        }
        let around = |blocks: Vec<Block>| {
            blocks.into_iter().map(|block| block.network).find(|around| around.contains(&network))
        };
        Err(match (around(blocked.list(now)), around(blocked.list_shared(now))) {
            (Some(around), _) => {
                format!("{name} is blocked as a part of {}: unblock that", network_name(around))
            }
            (None, Some(around)) => format!(
                "{0} is blocked on all machines: `kirin unblock {0} --all`",
                network_name(around)
            ),
            (None, None) => format!("{name} is not blocked"),
        })
    }
}
