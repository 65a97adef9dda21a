//! HTTP/1.0 and HTTP/1.1 (RFC 9112).

pub(crate) mod body;
pub(crate) mod connection;
mod informational;
mod memory_response;
mod negotiation;
pub(crate) mod output;
pub(crate) mod response_writer;
pub(crate) mod sending;
mod settling;
pub(crate) mod splicing;
pub(crate) mod tunnel;
