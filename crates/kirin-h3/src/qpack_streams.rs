//! The client's two QPACK streams (RFC 9204 section 4.2). Without a dynamic table there is nothing
//! to say on them but that.

use kirin_h2::hpack::primitives::read_integer;

use crate::code::{Code, Failure};

/// The most octets of an instruction.
const MOST_INSTRUCTION_BYTES: usize = 8;

/// The most instructions on a stream. A client cancels each response that it does not read.
const MOST_INSTRUCTIONS: u32 = 100_000;

/// Reads the stream of the client's encoder.
#[derive(Debug, Default)]
pub struct EncoderStreamReader {
    /// Number of instructions that set the size to 0.
    sizes: u32,
}

impl EncoderStreamReader {
    /// Takes all octets of `input`.
    ///
    /// # Errors
    /// The client uses a table that it must not have, and the connection must end.
    pub fn take(&mut self, input: &[u8]) -> Result<(), Failure> {
        let fail = || Failure::new(Code::QpackEncoderStream, "the dynamic table has no room");
        for octet in input {
            // `Set Dynamic Table Capacity` with 0, the only size that fits.
            self.sizes += 1;
            if *octet != 0x20 || self.sizes > MOST_INSTRUCTIONS {
                return Err(fail());
            }
        }
        Ok(())
    }
}

/// Reads the stream of the client's decoder.
#[derive(Debug, Default)]
pub struct DecoderStreamReader {
    kept: Vec<u8>,
    cancellations: u32,
}

impl DecoderStreamReader {
    /// Takes all octets of `input`.
    ///
    /// # Errors
    /// The client answers what the server has not said, and the connection must end.
    pub fn take(&mut self, input: &[u8]) -> Result<(), Failure> {
        let fail = |what| Failure::new(Code::QpackDecoderStream, what);
        for octet in input {
            self.kept.push(*octet);
            let Some((first, rest)) = self.kept.split_first() else { continue };
            // `Stream Cancellation`. The others are about entries of a table.
            if first & 0xc0 != 0x40 {
                return Err(fail("an answer to an instruction that was not sent"));
            }
            if read_integer(*first, 0x3f, rest).is_ok() {
                self.kept.clear();
                self.cancellations += 1;
                if self.cancellations > MOST_INSTRUCTIONS {
                    return Err(fail("there are too many cancellations"));
                }
            } else if self.kept.len() >= MOST_INSTRUCTION_BYTES {
                return Err(fail("the number of a stream is too long"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_say_only_that_it_has_no_table() {
        let mut encoder = EncoderStreamReader::default();
        assert_eq!(encoder.take(b"\x20\x20"), Ok(()));
        for insert in [&b"\x3f\x01"[..], b"\xc1\x01a", b"\x41a\x01b", b"\x00", b"\x21"] {
            let code = EncoderStreamReader::default().take(insert).map_err(|failure| failure.code);
            assert_eq!(code, Err(Code::QpackEncoderStream), "{insert:x?}");
        }
    }

    #[test]
    fn a_client_may_cancel_streams() {
        let mut decoder = DecoderStreamReader::default();
        assert_eq!(decoder.take(b"\x40\x44\x7f"), Ok(()));
        assert_eq!(decoder.take(b"\x80\x01\x48"), Ok(()));
        for answer in [&b"\x80"[..], b"\x84", b"\x01", b"\x00", b"\x7f\xff\xff\xff\xff\xff\xff\xff"]
        {
            let code = DecoderStreamReader::default().take(answer).map_err(|failure| failure.code);
            assert_eq!(code, Err(Code::QpackDecoderStream), "{answer:x?}");
        }
    }
}
