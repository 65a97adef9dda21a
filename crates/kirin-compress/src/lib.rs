#![forbid(unsafe_code)]
//! Content codings (RFC 9110 section 8.4.1): gzip, brotli and zstd.
//!
//! Bytes in, bytes out: there is no I/O here. [`AcceptEncoding`] has the codings that a client
//! accepts, and [`is_compressible`] tells which bodies are worth compressing. [`encode`] and
//! [`Encoder`] compress them.
//!
//! `kirin-files` uses this crate to choose between a file and its variants, and to make missing
//! variants. The gateway uses it for pages of the store and for responses of applications.

mod accept_encoding;
mod coding;
mod encoder;
mod media_type;

pub use accept_encoding::AcceptEncoding;
pub use coding::{Coding, Codings};
pub use encoder::{Effort, Encoder, encode};
pub use media_type::is_compressible;

/// The length in bytes below which a body is sent uncompressed. gzip saves 250 bytes of a page of
/// 500, which takes one packet in either case. Shorter bodies often grow.
pub const MIN_BYTES: u64 = 512;

/// The most bytes of a body that an event loop may compress itself to keep the result. That takes
/// 0.7 ms with brotli 5 and 0.4 ms with the others. Another thread compresses longer bodies.
pub const INLINE_BYTES: usize = 32 * 1024;
