//! The encoders: for a complete body, or for a stream piece by piece.
//!
//! The levels were chosen by measuring HTML on the 2-core machine of this project;
//! docs/compression.md has the table.

use std::io::{self, Write};

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::GzEncoder;
use zstd::zstd_safe::CParameter;

use crate::coding::Coding;

/// The time to spend on a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The result is kept and sent many times: brotli 5, zstd 9, gzip 6. The next higher levels
    /// take several times as long and save only a few percent.
    Kept,
    /// The result is sent once: brotli 3, zstd 3, gzip 2, at 150 to 300 MB of HTML a second.
    Once,
}

/// The largest window in bits for a result that is kept. A larger one needs more memory at the
/// client.
const KEPT_WINDOW_BITS: i32 = 22;

/// The window of a stream in bits: 128 KiB. A stream of events may live for hours, and its encoder
/// holds several times this much.
const STREAM_WINDOW_BITS: u32 = 17;

/// The level of zstd for streams. The tables of level 3 take 810 KB for an idle stream, those of
/// this level 110 KB. (brotli 3 takes 140 KB, gzip 320 KB.)
const STREAM_ZSTD_LEVEL: i32 = 1;

/// The size in bytes of the output buffer of a stream's brotli encoder.
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

/// Encodes a complete body. The same body and effort give the same bytes, so that the results can
/// share a strong entity tag. It fails only if memory runs out.
pub fn encode(coding: Coding, effort: Effort, body: &[u8]) -> io::Result<Vec<u8>> {
    let room = Vec::with_capacity(body.len() / 3);
    match coding {
        Coding::Brotli => {
            // A window larger than the body takes time and saves nothing.
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

/// An encoder for a body that arrives in pieces.
pub struct Encoder(Compressor);

enum Compressor {
    /// It is boxed because it is ten times as large as the others.
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// The most memory in bytes that an encoder takes after it has seen some data. Measured were
    /// 354 KB for gzip and 442 KB for the others.
    pub const MEMORY_BYTES: u64 = 448 * 1024;

    /// Creates an encoder for one body. It fails only if memory runs out.
    pub fn new(coding: Coding) -> io::Result<Self> {
        let effort = Effort::Once;
        Ok(Self(match coding {
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: effort.brotli_quality(),
                    lgwin: STREAM_WINDOW_BITS as i32,
                    ..BrotliEncoderParams::default()
                };
                Compressor::Brotli(Box::new(CompressorWriter::with_params(
                    Vec::new(),
                    BROTLI_BUFFER_BYTES,
                    &params,
                )))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), STREAM_ZSTD_LEVEL)?;
                encoder.set_parameter(CParameter::WindowLog(STREAM_WINDOW_BITS))?;
                Compressor::Zstd(encoder)
            }
            Coding::Gzip => Compressor::Gzip(GzEncoder::new(Vec::new(), effort.gzip_level())),
        }))
    }

    /// Adds bytes. The output for them may come later.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Compressor::Brotli(encoder) => encoder.write_all(bytes),
            Compressor::Zstd(encoder) => encoder.write_all(bytes),
            Compressor::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Flushes the output, so that the client can decode everything up to here.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Compressor::Brotli(encoder) => encoder.flush(),
            Compressor::Zstd(encoder) => encoder.flush(),
            Compressor::Gzip(encoder) => encoder.flush(),
        }
    }

    /// Returns the output since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(match &mut self.0 {
            Compressor::Brotli(encoder) => encoder.get_mut(),
            Compressor::Zstd(encoder) => encoder.get_mut(),
            Compressor::Gzip(encoder) => encoder.get_mut(),
        })
    }

    /// Ends the body and returns its last bytes.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Compressor::Brotli(encoder) => Ok(encoder.into_inner()),
            Compressor::Zstd(encoder) => encoder.finish(),
            Compressor::Gzip(encoder) => encoder.finish(),
        }
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
