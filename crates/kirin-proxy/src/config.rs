//! What a configuration says of an upstream.

use crate::address::ServerAddress;
use crate::tls::ClientTls;
use std::path::PathBuf;
use std::time::Duration;

/// Servers that answer the same requests.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The name in routes and in the log.
    pub name: String,
    /// At least one.
    pub servers: Vec<ServerAddress>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// Connections that are kept.
    pub pool: PoolLimits,
    /// Which `Host` they get.
    pub host: HostPolicy,
    /// How they hear of the client.
    pub forwarded: ForwardedPolicy,
    /// By which name we stand in `Via`; none for not at all.
    pub via: Option<String>,
    /// For those that are spoken with by TLS.
    pub tls: ClientTls,
    /// How often names are looked up.
    pub resolve: Duration,
    /// Where request bodies go that are read whole first and are large.
    pub spool_directory: PathBuf,
}

/// How long to wait, in whole seconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection, its TLS handshake included.
    pub connect: Duration,
    /// For a server that takes nothing of a request.
    pub send: Duration,
    /// For the response's head, from the end of the request on.
    pub first_byte: Duration,
    /// Between two pieces of a response.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { connect: Duration::from_secs(5), send: minute, first_byte: minute, idle: minute }
    }
}

/// Connections that are kept, for each server and event loop.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// Idle ones at most.
    pub idle: usize,
    /// For how long one may be idle.
    pub idle_time: Duration,
    /// Requests after which one is closed; 0 for never.
    pub max_requests: u64,
    /// Age at which one is closed.
    pub max_age: Option<Duration>,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { idle: 64, idle_time: Duration::from_secs(30), max_requests: 0, max_age: None }
    }
}

/// Which `Host` servers get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// The one that the client has asked for.
    #[default]
    Client,
    /// The server's own, as its address is written.
    Upstream,
    /// This one.
    Name(String),
}

/// Which fields tell servers of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedPolicy {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    X,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// All of them.
    Both,
    /// None.
    Nothing,
}

impl ForwardedPolicy {
    pub(crate) fn has_x(self) -> bool {
        matches!(self, ForwardedPolicy::X | ForwardedPolicy::Both)
    }

    pub(crate) fn has_forwarded(self) -> bool {
        matches!(self, ForwardedPolicy::Forwarded | ForwardedPolicy::Both)
    }
}
