//! The addresses that operators block and unblock.

use std::time::{Duration, Instant};

use kirin_config::{Seconds, parse_network};
use kirin_server::{BlockedAddresses, network_name};
use serde::Deserialize;

/// The longest time of a block. Longer ones belong into the configuration.
const MAX_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Blocks a network for a time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    /// An address, or a network such as `10.0.0.0/8`.
    network: String,
    /// How long.
    time: Seconds,
}

/// Ends a block before its time.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnblockRequest {
    /// The network, as it was blocked.
    network: String,
}

impl BlockRequest {
    /// Makes the change. Returns what was done, or a message for the operator.
    pub fn apply(&self, blocked: &BlockedAddresses) -> Result<String, String> {
        let network = parse_network(&self.network).map_err(|error| error.to_string())?;
        let time = Duration::from_secs(self.time.0);
        if time > MAX_TIME {
            return Err(format!(
                "a block of {} is too long: allowed are 365d; `allow` and `deny` of routes refuse clients for good",
                self.time
            ));
        }
        blocked.block(network, time, Instant::now()).map_err(|error| error.to_string())?;
        let name = network_name(network);
        tracing::info!("{name} is blocked for {}, by an operator", self.time);
        Ok(format!("{name} is blocked for {}\n", self.time))
    }
}

impl UnblockRequest {
    /// Makes the change. Returns what was done, or a message for the operator.
    pub fn apply(&self, blocked: &BlockedAddresses) -> Result<String, String> {
        let network = parse_network(&self.network).map_err(|error| error.to_string())?;
        let (name, now) = (network_name(network), Instant::now());
        if blocked.unblock(network, now) {
            tracing::info!("{name} is no longer blocked, by an operator");
            return Ok(format!("{name} is no longer blocked\n"));
        }
        let around = blocked.list(now).into_iter().find(|block| block.network.contains(&network));
        Err(match around {
            Some(block) => format!(
                "{name} is blocked as a part of {}: unblock that",
                network_name(block.network)
            ),
            None => format!("{name} is not blocked"),
        })
    }
}
