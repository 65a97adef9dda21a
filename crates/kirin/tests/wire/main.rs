//! Connections of clients: HTTP/1, HTTP/2, TLS, framing, limits.
//!
//! Each module is a topic. All start the built program and talk to it as its clients do.

mod client_bytes;
mod descriptors;
mod early_answers;
mod forwarded;
mod http;
mod http2;
mod limits;
mod ranges;
mod request_cost;
mod request_ids;
mod slow_readers;
mod strict;
mod tls;
mod trailers;
