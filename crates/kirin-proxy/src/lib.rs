#![forbid(unsafe_code)]
//! Other HTTP servers behind Kirin: `proxy:NAME` in a route.
//!
//! An [`Upstream`] is shared by all event loops: its configuration, and its [`Server`]s, each one
//! address. Each loop has a
//! [`ProxyPlace`] with connections of its own; [`ProxyPlace::answer`] is what a route calls for
//! each request.
//!
//! A request's way: `request_head` encodes the head, `content` looks at the body, `choose` picks a
//! server (or the request waits: `queueing`), `pool` gives a connection that is idle or `connect` a
//! new one, `exchange` sends the request and reads the response's head, `response_body` is read at
//! the client's pace. Servers that speak HTTP/2 have an `http2_connection` a loop, or a few, and
//! `http2_exchange` a stream for each request.
//!
//! Servers that speak FastCGI, SCGI or uwsgi have the same exchange; `cgi` has what is different
//! there.

mod address;
mod cgi;
mod choose;
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
mod sending;
mod server;
mod socket;
mod tls;
mod transport;
mod tunnel;
mod upstream;
mod upstream_request;
pub mod upstream_response;

pub use address::{AddressError, Location, Scheme, ServerAddress};
pub use config::{
    Balancing, BodyBuffering, FastCgiConfig, ForwardedPolicy, HashKey, HealthConfig, HostPolicy,
    PoolLimits, QueueLimits, ServerConfig, Timeouts, UpstreamConfig,
};
pub use kirin_balance::{Availability, Method, Observed, QueueObserved};
pub use place::ProxyPlace;
pub use server::Server;
pub use tls::{ClientTls, ClientTlsError, ClientTlsSettings};
pub use upstream::Upstream;

/// The label of responses by other HTTP servers.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_http::AnsweredBy::new("proxy");
