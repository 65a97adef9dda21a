#![forbid(unsafe_code)]
//! Content codings (RFC 9110 section 8.4.1): gzip, brotli and zstd.
//!
//! Bytes in, bytes out: no I/O and nothing of HTTP but its names. `kirin-files` chooses between a
//! file and its variants with this and makes the variants that are not there; the program does so
//! for pages of the store and for what applications answer. [`AcceptEncoding`] says what a client
//! takes, [`is_compressible`] what is worth it, [`encode`] and [`Encoder`] do it.

mod accept_encoding;
mod coding;
mod encoder;
mod media_type;

pub use accept_encoding::AcceptEncoding;
pub use coding::{Coding, Codings};
pub use encoder::{Effort, Encoder, encode};
pub use media_type::is_compressible;

/// Bodies below this are sent as they are. Of a page of 500 bytes gzip saves 250, which is the same
/// one packet on the wire; what is shorter often grows.
pub const MIN_BYTES: u64 = 512;

/// Up to here a body that is kept may be compressed on an event loop: 0.7 ms for brotli 5, 0.4 ms
/// for the others. A longer one is the work of another thread.
pub const INLINE_BYTES: usize = 32 * 1024;
