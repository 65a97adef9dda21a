//! The encoders: a whole body at once, or a stream piece by piece.
//!
//! Levels were chosen by measuring HTML on this program's 2-core machine; docs/compression.md has
//! the table.

use std::io::{self, Write};

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::zstd_safe::CParameter;

use crate::coding::Coding;

/// How much time a body is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// It is kept and sent many times: brotli 5, zstd 9, gzip 6. The next levels take a multiple of
    /// the time for some percent.
    Kept,
    /// It is sent once: brotli 3, zstd 3, gzip 2, at 150 to 300 MB of HTML a second.
    Once,
}

/// The largest window in bits for what is kept; a larger one needs more memory at the client.
const KEPT_WINDOW_BITS: i32 = 22;

/// The window of a stream in bits: 128 KiB. A stream may live for hours (events), and its encoder
/// holds this several times.
const STREAM_WINDOW_BITS: u32 = 17;

/// zstd 3 has tables that take 810 KB of an idle stream; with this it is 110 KB (brotli 3: 140 KB,
/// gzip: 320 KB).
const STREAM_ZSTD_LEVEL: i32 = 1;

/// Room for what a stream's brotli encoder gives at a time.
const BROTLI_BUFFER_BYTES: usize = 4096;

impl Effort {
    fn brotli_quality(self) -> i32 {
        match self {
            Effort::Kept => 5,
            Effort::Once => 3,
        }
    }

    fn zstd_level(self) -> i32 {
        match self {
            Effort::Kept => 9,
            Effort::Once => 3,
        }
    }

    fn gzip_level(self) -> Compression {
        match self {
            Effort::Kept => Compression::new(6),
            Effort::Once => Compression::new(2),
        }
    }
}

/// Encodes a whole body. The same body and effort give the same bytes, so that they can share a
/// strong entity tag. Fails only without memory.
pub fn encode(coding: Coding, effort: Effort, body: &[u8]) -> io::Result<Vec<u8>> {
    let room = Vec::with_capacity(body.len() / 3);
    match coding {
        Coding::Brotli => {
            // A window larger than the body costs time and gains nothing.
            let bits = (usize::BITS - body.len().leading_zeros()).max(16);
            let params = BrotliEncoderParams {
                quality: effort.brotli_quality(),
                lgwin: i32::try_from(bits)
                    .map_or(KEPT_WINDOW_BITS, |bits| bits.min(KEPT_WINDOW_BITS)),
                size_hint: body.len(),
                ..BrotliEncoderParams::default()
            };
            let mut out = room;
            brotli::BrotliCompress(&mut &body[..], &mut out, &params)?;
            Ok(out)
        }
        Coding::Zstd => zstd::bulk::compress(body, effort.zstd_level()),
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(room, effort.gzip_level());
            encoder.write_all(body)?;
            encoder.finish()
        }
    }
}

/// Encodes a body that comes over time.
pub struct Encoder(Stream);

enum Stream {
    /// Boxed, as it is ten times the size of the others.
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// Memory that an encoder takes at most once it has seen some data, in bytes: measured, 354 KB
    /// for gzip and 442 KB for the others.
    pub const MEMORY_BYTES: u64 = 448 * 1024;

    /// An encoder for one body. Fails only without memory.
    pub fn new(coding: Coding) -> io::Result<Self> {
        let effort = Effort::Once;
        Ok(Self(match coding {
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: effort.brotli_quality(),
                    lgwin: STREAM_WINDOW_BITS as i32,
                    ..BrotliEncoderParams::default()
                };
                Stream::Brotli(Box::new(CompressorWriter::with_params(
                    Vec::new(),
                    BROTLI_BUFFER_BYTES,
                    &params,
                )))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), STREAM_ZSTD_LEVEL)?;
                encoder.set_parameter(CParameter::WindowLog(STREAM_WINDOW_BITS))?;
                Stream::Zstd(encoder)
            }
            Coding::Gzip => Stream::Gzip(GzEncoder::new(Vec::new(), effort.gzip_level())),
        }))
    }

    /// Takes bytes in. They may come out only later.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Stream::Brotli(encoder) => encoder.write_all(bytes),
            Stream::Zstd(encoder) => encoder.write_all(bytes),
            Stream::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Lets everything out that was taken in, so that the client can decode up to here.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Stream::Brotli(encoder) => encoder.flush(),
            Stream::Zstd(encoder) => encoder.flush(),
            Stream::Gzip(encoder) => encoder.flush(),
        }
    }

    /// What has come out since the last time.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(match &mut self.0 {
            Stream::Brotli(encoder) => encoder.get_mut(),
            Stream::Zstd(encoder) => encoder.get_mut(),
            Stream::Gzip(encoder) => encoder.get_mut(),
        })
    }

    /// Ends the body and returns its last bytes.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Stream::Brotli(encoder) => Ok(encoder.into_inner()),
            Stream::Zstd(encoder) => encoder.finish(),
            Stream::Gzip(encoder) => encoder.finish(),
        }
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
