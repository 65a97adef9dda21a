//! The length and the hash of a body that passes by, without the parts that are ignored.
//!
//! Patterns are looked for in each line, so that a body of any length needs little memory. A longer
//! line is cut after [`PIECE_BYTES`], and the rest is a line of its own.

use std::sync::Arc;

use kirin_compress::is_compressible;
use kirin_http::FieldLines;
use xxhash_rust::xxh3::Xxh3;

use super::ignored_parts::IgnoredParts;

/// The longest line in which patterns are looked for, in bytes.
pub const PIECE_BYTES: usize = 16 * 1024;

/// The part of a body in which patterns are looked for, in bytes. More would keep the event loop
/// from other work for too long.
const SEARCHED_BYTES: u64 = 1 << 20;

/// The digest of a body so far.
pub struct BodyDigest {
    hash: Box<Xxh3>,
    length_bytes: u64,
    /// `None` if nothing is cut out.
    cutting: Option<Cutting>,
}

/// The state of a body out of whose lines parts are cut.
struct Cutting {
    parts: Arc<IgnoredParts>,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    searched_bytes: u64,
}

impl BodyDigest {
    /// Creates the digest of a body with these fields. Parts are cut out of text only, and not out
    /// of text in a content coding.
    pub fn new(fields: &FieldLines, ignored: &Arc<IgnoredParts>) -> Self {
        let is_text = fields.get("content-type").is_some_and(is_compressible);
        let cuts = !ignored.is_empty() && is_text && !is_coded(fields);
        let cutting =
            || Cutting { parts: Arc::clone(ignored), line: Vec::new(), searched_bytes: 0 };
        Self { hash: Box::default(), length_bytes: 0, cutting: cuts.then(cutting) }
    }

    /// Returns whether parts are cut out, so that the length of the body says nothing.
    pub fn cuts(&self) -> bool {
        self.cutting.is_some()
    }

    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(cutting) = &mut self.cutting {
            let room = PIECE_BYTES - cutting.line.len();
            let end = memchr::memchr(b'\n', &rest[..rest.len().min(room)]);
            let taken = end.unwrap_or(rest.len().min(room));
            let (piece, behind) = rest.split_at(taken);
            cutting.searched_bytes += taken as u64;
            if end.is_none() && piece.len() < room {
                cutting.line.extend_from_slice(piece);
                return;
            }
            let is_searched = cutting.searched_bytes >= SEARCHED_BYTES;
            // A line that is there at once needs no copy.
            if cutting.line.is_empty() {
                let kept = cutting.parts.cut(piece);
                take(&mut self.hash, &mut self.length_bytes, &kept);
            } else {
                cutting.line.extend_from_slice(piece);
                let kept = cutting.parts.cut(&cutting.line);
                take(&mut self.hash, &mut self.length_bytes, &kept);
                cutting.line.clear();
            }
            rest = behind;
            if end.is_some() {
                take(&mut self.hash, &mut self.length_bytes, b"\n");
                rest = &rest[1..];
            }
            if is_searched {
                self.cutting = None;
            }
        }
        take(&mut self.hash, &mut self.length_bytes, rest);
    }

    /// Returns the length in bytes and the hash.
    pub fn finish(mut self) -> (u64, u64) {
        if let Some(Cutting { parts, line, .. }) = self.cutting.take() {
            take(&mut self.hash, &mut self.length_bytes, &parts.cut(&line));
        }
        (self.length_bytes, self.hash.digest())
    }
}

fn take(hash: &mut Xxh3, length_bytes: &mut u64, bytes: &[u8]) {
    *length_bytes += bytes.len() as u64;
    hash.update(bytes);
}

/// Returns whether the body with these fields is in a content coding.
pub fn is_coded(fields: &FieldLines) -> bool {
    fields.lines("content-encoding").any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(media_type: &str, coding: Option<&str>) -> FieldLines {
        let mut fields = FieldLines::new();
        fields.push("Content-Type", media_type);
        if let Some(coding) = coding {
            fields.push("Content-Encoding", coding);
        }
        fields
    }

    fn digest(fields: &FieldLines, patterns: &[&str], pieces: &[&[u8]]) -> (u64, u64) {
        let ignored = Arc::new(IgnoredParts::compile(patterns.iter().copied()).unwrap());
        let mut digest = BodyDigest::new(fields, &ignored);
        pieces.iter().for_each(|piece| digest.add(piece));
        digest.finish()
    }

    #[test]
    fn the_digest_does_not_depend_on_the_pieces() {
        let html = fields("text/html", None);
        let long = [b"1x".repeat(PIECE_BYTES), b"\n2\n\n3".to_vec()].concat();
        let lines = b"a 1\nb 22\n\n3 c".to_vec();
        for (body, patterns, length) in [
            (&lines, &[][..], 13),
            (&lines, &["[0-9]"], 9),
            (&long, &["[0-9]"], PIECE_BYTES + 3),
            (&long, &["^[0-9]$", "^1"], 2 * PIECE_BYTES + 1),
        ] {
            let whole = digest(&html, patterns, &[body]);
            assert_eq!(whole.0, length as u64, "{patterns:?}");
            for size in [1, 3, 5, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1] {
                let pieces: Vec<&[u8]> = body.chunks(size).collect();
                assert_eq!(digest(&html, patterns, &pieces), whole, "{patterns:?} {size}");
            }
        }
    }

    #[test]
    fn only_ignored_parts_of_uncoded_text_may_differ() {
        let token = |text: &str| [b"<p>token=", text.as_bytes(), b"</p>\n"].concat();
        for (media_type, coding, is_same) in [
            ("text/html; charset=utf-8", None, true),
            ("application/json", Some("identity"), true),
            ("text/html", Some("gzip"), false),
            ("image/png", None, false),
        ] {
            let fields = fields(media_type, coding);
            let of = |text| digest(&fields, &["token=\\w+"], &[&token(text)]);
            assert_eq!(of("a1") == of("b234"), is_same, "{media_type} {coding:?}");
            assert_ne!(of("a1 b"), of("a1 c"), "{media_type} {coding:?}");
        }
    }

    #[test]
    fn patterns_are_looked_for_in_the_first_megabyte() {
        let html = fields("text/html", None);
        let before = b"x\n".repeat(SEARCHED_BYTES as usize + 1);
        let of = |before: &[u8], end: &[u8]| digest(&html, &["[0-9]"], &[before, end]);
        assert_ne!(of(&before, b"1"), of(&before, b"2"));
        assert_eq!(of(&before[..2000], b"1"), of(&before[..2000], b"2"));
    }
}
