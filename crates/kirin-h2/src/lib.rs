//! HTTP/2 of a server (RFC 9113) as a pure engine: received bytes go in, events and bytes to be
//! sent come out. It has no sockets, no clock and no tasks.
//!
//! [`Connection::receive`] takes what a client has sent, and returns an [`Event`] when there is
//! something to do. A response that is ready is written into the output by [`Connection::head`] and
//! [`Connection::data`]; its stream never becomes an entry of a table. All others are opened
//! ([`Connection::open`]). Whenever there is room in the output, [`Connection::next_sender`] says
//! whose turn it is (RFC 9218), and [`Connection::fill`] takes its data.
//!
//! Errors have the codes of RFC 9113. Everything that a client could do too often has a budget.

#![forbid(unsafe_code)]

mod budget;
mod connection;
mod control_frames;
mod failure;
mod frame;
mod header_blocks;
pub mod hpack;
mod output;
pub mod priority;
mod reason;
mod receiving;
pub mod request;
mod sending;
mod settings;
mod streams;
mod window;

pub use connection::{Connection, Event};
pub use failure::{Excess, Failure};
pub use output::Output;
pub use reason::Reason;
pub use receiving::{PREFACE, Received};
pub use sending::{FRAME_BYTES, FieldWriter};
pub use settings::Limits;
