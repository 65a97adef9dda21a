//! What a configuration says of an upstream.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use kirin_balance::Method;

use crate::address::ServerAddress;
use crate::tls::ClientTls;

/// Servers that answer the same requests.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// The name in routes and in the log.
    pub name: String,
    /// At least one.
    pub servers: Vec<ServerConfig>,
    /// Who of them gets a request.
    pub balancing: Balancing,
    /// Who waits when all of them are at their limit.
    pub queue: QueueLimits,
    /// How they are asked whether they are well; none for not at all.
    pub health: Option<HealthConfig>,
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
    /// Which scripts requests mean, of servers that speak FastCGI. All servers speak the same then.
    pub fastcgi: Option<FastCgiConfig>,
    /// How often names are looked up.
    pub resolve: Duration,
    /// Where request bodies go that are read whole first and are large.
    pub spool_directory: PathBuf,
}

/// Which scripts requests to FastCGI servers mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCgiConfig {
    /// The directory of scripts, as the servers see it.
    pub root: String,
    /// The script of a directory.
    pub index: String,
    /// What the names of scripts end in, with its dot.
    pub extension: String,
}

/// One server, or as many as its name has addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where it is.
    pub address: ServerAddress,
    /// What it gets in relation to the others; from 1 on.
    pub weight: u32,
    /// Whether it is only asked when no other can be.
    pub backup: bool,
    /// Requests at most that it is at at the same time, of all event loops together; none for any
    /// number.
    pub max_in_flight: Option<NonZeroU32>,
}

/// Requests that wait for a server below its limit.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// How many may.
    pub length: usize,
    /// For how long.
    pub wait: Duration,
}

/// Who gets a request.
#[derive(Clone, Debug)]
pub struct Balancing {
    /// How a server is chosen.
    pub method: Method,
    /// What requests are told apart by, for [`Method::Hash`].
    pub key: Option<HashKey>,
    /// The cookie that brings visitors back to their server.
    pub sticky: Option<String>,
    /// Failures in a row after which a server is left alone; 0 for never.
    pub max_failures: u32,
    /// For how long, the first time.
    pub ejection_time: Duration,
    /// In which a server that has come back grows to its weight.
    pub slow_start: Duration,
    /// Requests of 100 that may be sent a second time, beside a few a second.
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

/// What tells requests apart.
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

/// How servers are asked whether they are well.
#[derive(Clone, Debug)]
pub struct HealthConfig {
    /// Path and query.
    pub path: String,
    /// `Host`; the server's own by default.
    pub host: Option<String>,
    /// From one time to the next.
    pub interval: Duration,
    /// For an answer.
    pub timeout: Duration,
    /// What a server that is well answers.
    pub status: RangeInclusive<u16>,
    /// Good answers in a row that make an unhealthy server healthy.
    pub healthy_after: u32,
    /// Bad ones in a row that make a healthy server unhealthy.
    pub unhealthy_after: u32,
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

impl UpstreamConfig {
    /// Whether a server takes only so many requests at the same time.
    pub fn is_limited(&self) -> bool {
        self.servers.iter().any(|server| server.max_in_flight.is_some())
    }
}

/// Whether a request's body is read whole before a server hears of the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyBuffering {
    /// It is passed on as it comes.
    #[default]
    Off,
    /// It is.
    On,
    /// It is, up to so many bytes; gRPC, whose two sides talk, is passed on as it comes.
    UnlessGrpc {
        /// A larger body is answered 413.
        limit_bytes: u64,
    },
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
