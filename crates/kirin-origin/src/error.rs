//! What can go wrong with an origin.

use std::time::Duration;

use crate::address::NodeAddress;

/// An error of the origin. Its text is for people: it goes to the log and to memcached clients.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// There is no connection. Nothing was sent.
    #[error("the origin is away: {0}")]
    Away(String),
    /// No answer came in time. The command may have been carried out.
    #[error("the origin has not answered within {}; the command may have been carried out", limit_text(*.0))]
    TimedOut(Duration),
    /// The connection has ended inside a command, which may have been carried out.
    #[error("the connection to the origin has ended ({0}); the command may have been carried out")]
    Interrupted(String),
    /// Too many commands wait for an answer. Nothing was sent.
    #[error("the origin is too slow: {0} commands wait for it")]
    Busy(usize),
    /// The server has refused the command.
    #[error("the origin refuses: {0}")]
    Refused(String),
    /// The server has answered something that this command cannot have.
    #[error("the origin has answered what Kirin does not know: {0}")]
    Unexpected(String),
    /// A record is too long. Nothing was sent.
    #[error("{0} bytes are too many for a record on the origin: allowed are 256 KB")]
    RecordTooLong(usize),
    /// Other writers were faster each time.
    #[error("the item changes on the origin too often")]
    Contended,
}

fn limit_text(limit: Duration) -> String {
    format!("{} ms", limit.as_millis())
}

/// Why there is no connection to the server, or why one has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The name of the server or its socket does not lead to one.
    #[error("cannot connect to {address}: {reason}")]
    Unreachable {
        /// The server, without a password.
        address: String,
        /// What the system or the server has said.
        reason: String,
    },
    /// The server is not one that keeps copies true.
    #[error("{address} is {found}; the origin must be Redis {LEAST_VERSION} or later, or Valkey")]
    TooOld {
        /// The server, without a password.
        address: String,
        /// The name and the version that it gives.
        found: String,
    },
    /// The server is not the kind of server that the address says.
    #[error("{address} is {found}; {advice}")]
    WrongKind {
        /// The server, without a password.
        address: String,
        /// What it is.
        found: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// No Sentinel names a master.
    #[error("no Sentinel names the master `{name}`: {reasons}")]
    NoMaster {
        /// The name of the master.
        name: String,
        /// What each Sentinel has said, or why it has not.
        reasons: String,
    },
    /// The Sentinels name another master than the one that the connection is to, or there was a
    /// failover and another one back.
    #[error("after a failover the Sentinels name the master {0}")]
    OtherMaster(NodeAddress),
    /// No node of the address knows a cluster with a master for each slot.
    #[error("no node knows a cluster that can be used: {0}")]
    NoCluster(String),
    /// A server of the cluster tells of another map of slots, or of a failover.
    #[error("the cluster has changed: {0}")]
    OtherMap(String),
    /// The connection was there, and has ended.
    #[error("{0}")]
    Ended(String),
}

/// The oldest Redis that sends invalidations between replies and never inside one
/// (redis/redis#8935, #9422, #11038).
pub const LEAST_VERSION: &str = "6.2.14";
