//! HTTP/3 of a server (RFC 9114) without I/O: the bytes of QUIC streams go in, and parts of
//! requests come out. It has no sockets, no clock and no tasks; QUIC itself is a library's.
//!
//! [`request_stream`] cuts the frames of a request, [`control`] and [`qpack_streams`] read the
//! streams that each side has once, and [`qpack`] reads and writes field sections. There is no
//! dynamic table (RFC 9204): a client is told that its size is 0. Then no request waits for another
//! stream, and a connection needs no memory for it.
//!
//! Everything that must be complete before it can be read has a limit, so that a client cannot make
//! the server keep more.

#![forbid(unsafe_code)]

pub mod code;
pub mod control;
pub mod frame;
pub mod qpack;
pub mod qpack_streams;
pub mod request_stream;
pub mod settings;
pub mod stream_type;
pub mod varint;

pub use code::{Code, Failure};
