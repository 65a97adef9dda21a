//! The output is decoded again by the decoders of the same libraries.
//! crates/kirin/tests/pages/compression.rs uses curl and others.

use proptest::prelude::*;

use super::*;

/// Decodes a complete body.
fn decode(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let mut decoder = Decoder::new(coding);
    decoder.write(coded);
    decoder.out().to_vec()
}

enum Decoder {
    Brotli(Box<brotli::DecompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Decoder<'static, Vec<u8>>),
    Gzip(Box<flate2::write::GzDecoder<Vec<u8>>>),
}

impl Decoder {
    fn new(coding: Coding) -> Self {
        match coding {
            // It returns one buffer for each write.
            Coding::Brotli => {
                Self::Brotli(Box::new(brotli::DecompressorWriter::new(Vec::new(), 1 << 16)))
            }
            Coding::Zstd => Self::Zstd(zstd::stream::write::Decoder::new(Vec::new()).unwrap()),
            Coding::Gzip => Self::Gzip(Box::new(flate2::write::GzDecoder::new(Vec::new()))),
        }
    }

    fn write(&mut self, coded: &[u8]) {
        match self {
            Self::Brotli(decoder) => decoder.write_all(coded).and_then(|()| decoder.flush()),
            Self::Zstd(decoder) => decoder.write_all(coded).and_then(|()| decoder.flush()),
            Self::Gzip(decoder) => decoder.write_all(coded).and_then(|()| decoder.flush()),
        }
        .unwrap();
    }

    /// Returns the bytes that the client has so far.
    fn out(&self) -> &[u8] {
        match self {
            Self::Brotli(decoder) => decoder.get_ref(),
            Self::Zstd(decoder) => decoder.get_ref(),
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }
}

fn html(bytes: usize) -> Vec<u8> {
    let line = b"<li class=\"entry\"><a href=\"/entry/1234\">Lorem ipsum dolor sit amet</a></li>\n";
    line.iter().copied().cycle().take(bytes).collect()
}

#[test]
fn a_page_becomes_much_smaller_and_decodes_to_itself() {
    for coding in Coding::ALL {
        for effort in [Effort::Kept, Effort::Once] {
            for bytes in [0, 1, 511, 10_000, 200_000, 5_000_000] {
                let body = html(bytes);
                let coded = encode(coding, effort, &body).unwrap();
                assert!(decode(coding, &coded) == body, "{coding:?} {effort:?} {bytes}");
                assert!(
                    bytes < 1000 || coded.len() < bytes / 5,
                    "{coding:?} {effort:?}: {}",
                    coded.len()
                );
                assert!(
                    encode(coding, effort, &body).unwrap() == coded,
                    "{coding:?} {effort:?} is not the same twice"
                );
            }
        }
    }
}

#[test]
fn a_body_is_one_gzip_member_or_one_zstd_frame() {
    // A client may decode one frame only, as Go's decoder and those of some browsers do.
    let body = html(300_000);
    let coded = encode(Coding::Gzip, Effort::Kept, &body).unwrap();
    let mut rest = &coded[..];
    let mut out = Vec::new();
    std::io::Read::read_to_end(&mut flate2::bufread::GzDecoder::new(&mut rest), &mut out).unwrap();
    assert!(rest.is_empty() && out == body);
    let coded = encode(Coding::Zstd, Effort::Kept, &body).unwrap();
    assert_eq!(zstd::zstd_safe::find_frame_compressed_size(&coded).unwrap(), coded.len());
}

proptest! {
    #[test]
    fn any_body_in_any_chunks_decodes_and_flushed_bytes_are_there(
        chunks in prop::collection::vec((prop_oneof![
            prop::collection::vec(any::<u8>(), 0..2000),
            "[a-f<>/ ]{0,400}".prop_map(String::into_bytes),
        ], any::<bool>()), 0..12),
        which in 0usize..3,
    ) {
        let coding = Coding::ALL[which];
        let mut encoder = Encoder::new(coding).unwrap();
        let mut decoder = Decoder::new(coding);
        let mut body = Vec::new();
        for (chunk, is_flushed) in &chunks {
            encoder.write(chunk).unwrap();
            body.extend_from_slice(chunk);
            if *is_flushed {
                encoder.flush().unwrap();
                decoder.write(&encoder.take());
                prop_assert_eq!(decoder.out(), &body[..], "after a flush of {:?}", coding);
            }
        }
        let rest = encoder.take();
        decoder.write(&rest);
        decoder.write(&encoder.finish().unwrap());
        prop_assert_eq!(decoder.out(), &body[..]);
        for effort in [Effort::Kept, Effort::Once] {
            prop_assert_eq!(decode(coding, &encode(coding, effort, &body).unwrap()), &body[..]);
        }
    }
}
