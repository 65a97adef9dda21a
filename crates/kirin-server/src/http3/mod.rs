//! HTTP/3 (RFC 9114): the streams of QUIC connections become the same requests, for the same
//! handler, as those of HTTP/1 and HTTP/2.
//!
//! QUIC itself is `quinn-proto`, which has no sockets and no clock, and the frames are `kirin-h3`.
//! An [`endpoint`] is a task of one event loop with one UDP socket. It gives datagrams to their
//! connections, and answers requests whose responses are ready. A request that must wait is a task
//! of its own, which wakes the endpoint when it has read or written something.

mod address_proof;
mod body;
mod client;
mod client_streams;
mod connection;
mod connection_ids;
mod early_data;
pub(crate) mod endpoint;
mod priority;
mod request;
mod responding;
mod secret;
mod sending;
mod socket;
pub(crate) mod steering;
mod stream;
mod succession;
mod timers;
mod transport;
mod tunnel;
mod used_tokens;
