//! The configuration of an upstream.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use kirin_balance::Method;

use crate::address::ServerAddress;
use crate::tls::ClientTls;

/// The largest weight of a server.
pub const MAX_WEIGHT: u32 = 1000;

/// The configuration of an upstream: servers that answer the same requests.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The name in routes and in the log.
    pub name: String,
    /// The servers; at least one.
    pub servers: Vec<ServerConfig>,
    /// How a server is chosen for a request.
    pub balancing: Balancing,
    /// The queue for requests when all servers are at their limit.
    pub queue: QueueLimits,
    /// The health checks; `None` for no checks.
    pub health: Option<HealthConfig>,
    /// How long Kirin waits for the servers.
    pub timeouts: Timeouts,
    /// The limits for idle connections.
    pub pool: PoolLimits,
    /// The `Host` that servers get.
    pub host: HostPolicy,
    /// The fields that tell servers about the client.
    pub forwarded: ForwardedPolicy,
    /// Kirin's name in `Via`; `None` for no `Via`.
    pub via: Option<String>,
    /// The TLS settings for servers with `https`.
    pub tls: ClientTls,
    /// The mapping of requests to scripts, if the servers speak FastCGI. Then all of them do.
    pub fastcgi: Option<FastCgiConfig>,
    /// The files that servers may name for Kirin to send.
    pub named_files: NamedFilesConfig,
    /// The time between two lookups of the servers' names.
    pub resolve: Duration,
    /// The directory for large request bodies that are read completely before they are sent.
    pub spool_directory: PathBuf,
}

/// The files that servers may name in a response, for Kirin to send as its body. With neither, a
/// response that names a file is answered 502.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFilesConfig {
    /// The directories of files that `X-Sendfile` names by their paths.
    pub roots: Vec<PathBuf>,
    /// The paths that `X-Accel-Redirect` may begin with, and the directory of each. A path ends in
    /// `/`.
    pub locations: Vec<(String, PathBuf)>,
}

impl NamedFilesConfig {
    /// Returns whether servers may name no files.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty() && self.locations.is_empty()
    }
}

/// The mapping of requests to scripts of FastCGI servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCgiConfig {
    /// The directory of the scripts, as the servers see it.
    pub root: String,
    /// The script that answers for a directory.
    pub index: String,
    /// The file name extension of scripts, with its dot.
    pub extension: String,
    /// Whether a script also runs for paths behind its name.
    pub takes_path_info: bool,
}

/// One server, or one for each address of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The address of the server.
    pub address: ServerAddress,
    /// The share of requests in relation to the other servers, from 1 to
    /// [`MAX_WEIGHT`].
    pub weight: u32,
    /// Whether the server gets requests only if no other can take them.
    pub backup: bool,
    /// The most requests that the server handles at the same time, counted over all event loops.
    /// `None` for no limit.
    pub max_in_flight: Option<NonZeroU32>,
}

/// The limits of the queue for requests that wait for a server.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// The most requests that wait.
    pub length: usize,
    /// The longest time that a request waits.
    pub wait: Duration,
}

/// How a server is chosen for a request.
#[derive(Clone, Debug)]
pub struct Balancing {
    /// The method of balancing.
    pub method: Method,
    /// The key of a request, for [`Method::Hash`].
    pub key: Option<HashKey>,
    /// The name of the cookie that leads visitors back to the same server.
    pub sticky: Option<String>,
    /// Consecutive failures after which a server is ejected; 0 for never.
    pub max_failures: u32,
    /// How long the first ejection lasts.
    pub ejection_time: Duration,
    /// How long a recovered server takes to return from 1/16 of its weight to all of it.
    pub slow_start: Duration,
    /// The percentage of requests that may be retried, in addition to 10 retries a second.
    pub retry_percent: u32,
}

impl Default for Balancing {
    fn default() -> Self {
        Self {
            method: Method::default(),
            key: None,
            sticky: None,
            max_failures: 3,
            ejection_time: Duration::from_secs(10),
            slow_start: Duration::ZERO,
            retry_percent: 20,
        }
    }
}

/// The part of a request that is its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// Path and query.
    Target,
    /// The client's address.
    Address,
    /// The value of this request field.
    Header(String),
    /// The value of this cookie.
    Cookie(String),
}

/// The health checks of the servers.
#[derive(Clone, Debug)]
pub struct HealthConfig {
    /// The path and query to request.
    pub path: String,
    /// The `Host` to send; `None` for the server's own.
    pub host: Option<String>,
    /// The time between two checks.
    pub interval: Duration,
    /// The longest time for one check.
    pub timeout: Duration,
    /// The statuses of a healthy server.
    pub status: RangeInclusive<u16>,
    /// Consecutive good checks that make an unhealthy server healthy.
    pub healthy_after: u32,
    /// Consecutive bad checks that make a healthy server unhealthy.
    pub unhealthy_after: u32,
}

/// How long Kirin waits for a server, in whole seconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The time for a connection, with the TLS handshake.
    pub connect: Duration,
    /// The time in which a server must take more of a request.
    pub send: Duration,
    /// The time from the end of the request to the response head.
    pub first_byte: Duration,
    /// The time between two pieces of a response.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { connect: Duration::from_secs(5), send: minute, first_byte: minute, idle: minute }
    }
}

impl UpstreamConfig {
    /// Returns whether a server has a limit of concurrent requests.
    pub fn is_limited(&self) -> bool {
        self.servers.iter().any(|server| server.max_in_flight.is_some())
    }
}

/// Whether a request's body is read completely before a server gets the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyBuffering {
    /// The body is sent as it arrives.
    #[default]
    Off,
    /// The body is read completely first.
    On,
    /// The body is read completely first, up to a limit. The body of a gRPC call is sent as it
    /// arrives, because both sides talk at the same time.
    UnlessGrpc {
        /// The longest body in bytes. A longer one is answered with 413.
        limit_bytes: u64,
    },
}

/// The limits for idle connections, for each server and event loop.
#[derive(Clone, Copy, Debug)]
pub struct PoolLimits {
    /// The most idle connections.
    pub idle: usize,
    /// How long a connection may be idle.
    pub idle_time: Duration,
    /// Requests after which a connection is closed; 0 for never.
    pub max_requests: u64,
    /// The age at which a connection is closed; `None` for never.
    pub max_age: Option<Duration>,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { idle: 64, idle_time: Duration::from_secs(30), max_requests: 0, max_age: None }
    }
}

/// The `Host` that servers get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// The host that the client has sent.
    #[default]
    Client,
    /// The server's own host, as its address is written.
    Upstream,
    /// This host.
    Name(String),
}

/// The fields that tell servers about the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedPolicy {
    /// `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    X,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// All four fields.
    Both,
    /// No such field.
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
