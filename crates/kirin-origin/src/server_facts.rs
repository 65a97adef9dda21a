//! What a server says about itself, and which run of it this is.

use crate::slots::SlotRange;

/// What a server says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// `redis` or `valkey`.
    pub name: String,
    /// The version.
    pub version: String,
    /// Whether the server may evict keys (`maxmemory-policy` other than `noeviction`), or does not
    /// say.
    pub evicts: bool,
    /// The run of the server (`run_id`), if it says.
    pub run: Option<String>,
}

/// A run of a server as the master. Another one may have lost the last writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerRun {
    /// The run of the server (`run_id`).
    pub(crate) id: String,
    /// The number of the failover that has made it the master, if a Sentinel or the server of a
    /// cluster has said it. The same run may be the master again after another server was.
    pub(crate) failover: Option<u64>,
}

/// The runs of all servers of an origin, and what each of them has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServersRun {
    pub(crate) servers: Vec<ServerRun>,
    /// The slots of a cluster, with the indexes of their servers. A server that gets slots may have
    /// outdated items in them.
    pub(crate) slots: Vec<SlotRange>,
}
