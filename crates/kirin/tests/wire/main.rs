//! Connections of clients: HTTP/1, HTTP/2, TLS, framing, limits.
//!
//! Each module is a topic. All start the built program and talk to it as its clients do.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod client_bytes;
mod descriptors;
mod early_answers;
mod forwarded;
mod http;
mod http2;
mod http3;
mod limits;
mod ranges;
mod request_cost;
mod request_ids;
mod slow_readers;
mod strict;
mod tls;
mod tls_tickets;
mod trailers;
mod versions;
