//! HPACK (RFC 7541), the compression of header fields in HTTP/2.
//!
//! A [`Decoder`] turns a header block into a [`FieldBuffer`], and an [`Encoder`] writes fields into
//! a header block. Each connection has one of both. Both allocate nothing before the first field
//! goes into their table, and nothing in the steady state.

mod decoder;
mod dynamic_table;
mod encoder;
mod error;
mod fields;
mod hash;
mod huffman;
mod huffman_table;
mod indexing;
mod integer;
mod known;
mod literal;
pub mod primitives;
mod static_table;
#[cfg(test)]
mod tests;
mod validity;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::HpackError;
pub use fields::{Field, FieldBuffer};
pub use known::Known;
pub(crate) use validity::is_valid_method;
