//! The settings of an origin.

use std::time::Duration;

use crate::address::Address;
use crate::names::Names;

/// How long a command may take, if nobody has said.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long copies are served without a proof, if nobody has said.
pub const DEFAULT_STALE_LIMIT: Duration = Duration::from_secs(5);

/// The settings of an origin.
#[derive(Clone, Debug)]
pub struct OriginConfig {
    /// The server.
    pub address: Address,
    /// The names of keys on the server.
    pub names: Names,
    /// How long a command may take. No client waits longer for the server than this for each trip.
    pub timeout: Duration,
    /// How long copies are served when the server no longer proves that they are true. Whole
    /// seconds, at least 2.
    pub stale_limit: Duration,
}

impl OriginConfig {
    /// Returns the settings of a server with the usual names and limits.
    pub fn new(address: Address) -> Self {
        let names = Names::default();
        Self { address, names, timeout: DEFAULT_TIMEOUT, stale_limit: DEFAULT_STALE_LIMIT }
    }
}
