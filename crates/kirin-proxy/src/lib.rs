#![forbid(unsafe_code)]
//! Other servers behind Kirin: `proxy:NAME` in a route.
//!
//! All event loops share an [`Upstream`]: its configuration and its [`ProxiedServer`]s, each of
//! which is one address. Each loop has a [`ProxyPlace`] with connections of its own. A route calls
//! [`ProxyPlace::answer`] for each request.
//!
//! The way of a request:
//!
//! - `request_head` encodes the head, and `content` prepares the content.
//! - `selection` selects a server. If all are at their limit, `queueing` waits.
//! - `transport` gets a connection: an idle one from `pool`, a stream of `http2_connection`, or a
//!   new one from `connect`.
//! - `exchange` sends the request and reads the response head. `http2_exchange` does that for
//!   HTTP/2.
//! - `response_body` reads the body as the client takes it.
//! - `leased_connection` gives the connection back.
//!
//! Servers that speak FastCGI, SCGI or uwsgi use the same exchange; `cgi` contains the differences.

mod address;
mod cgi;
mod config;
mod connect;
mod content;
mod deadlines;
mod exchange;
mod failure;
mod forwarding_fields;
mod health;
mod http2_connection;
mod http2_exchange;
mod http2_head;
mod leased_connection;
mod local_upstream;
mod place;
mod pool;
mod pooled_buffer;
mod queueing;

pub mod request_head;
mod resolve;
mod response_body;
mod selection;
mod sending;
mod server;
mod socket;
mod timed_attempt;
mod tls;
mod transport;
mod tunnel;
mod upstream;
mod upstream_request;
pub mod upstream_response;

pub use address::{AddressError, Location, ServerAddress, ServerScheme};
pub use config::{
    Balancing, BodyBuffering, FastCgiConfig, ForwardedPolicy, HashKey, HealthConfig, HostPolicy,
    MAX_WEIGHT, NamedFilesConfig, PoolLimits, QueueLimits, ServerConfig, Timeouts, UpstreamConfig,
};
pub use kirin_balance::{
    Availability, Method, OperatorState, QueueStatus, ServerChange, ServerStatus,
};
pub use place::ProxyPlace;
pub use server::ProxiedServer;
pub use tls::ClientTls;
pub use upstream::Upstream;

/// The label of responses by other HTTP servers.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_http::AnsweredBy::new("proxy");
