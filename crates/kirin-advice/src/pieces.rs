//! Splits a response body into pieces, and keeps a keyed hash and the length of each.
//!
//! A piece ends after a byte of [`ends_piece`], so the same text has the same pieces wherever it
//! stands in a body. No byte of the body is kept.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// The most pieces of a body. Of a body with more only the hash of the complete body is kept.
pub const MAX_PIECES: usize = 16 * 1024;

/// The longest piece in bytes.
const MAX_PIECE_BYTES: usize = 0x7fff;

/// The hash of a piece (48 bits), its length in bytes (15 bits), and whether a line ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HashedPiece(u64);

impl HashedPiece {
    fn new(hash: u64, length: usize, ends_line: bool) -> Self {
        let length = length.min(MAX_PIECE_BYTES) as u64;
        Self(hash & !0xffff | length << 1 | u64::from(ends_line))
    }

    /// Returns its length in bytes.
    pub fn length(self) -> u64 {
        self.0 >> 1 & 0x7fff
    }

    /// Returns whether a line ends with it.
    pub fn ends_line(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A body of which hashes are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedBody {
    /// The hash of the complete body.
    pub hash: u64,
    /// The pieces. `None` if there are too many.
    pub pieces: Option<Arc<[HashedPiece]>>,
}

/// Hashes a body that arrives in chunks. `K` makes the keyed hashers; one key is for one run.
pub struct Splitter<K: BuildHasher> {
    key: K,
    /// The hashes of all pieces so far, mixed.
    body: u64,
    body_length: u64,
    piece: K::Hasher,
    piece_length: usize,
    pieces: Vec<HashedPiece>,
    has_too_many: bool,
}

impl<K: BuildHasher> Splitter<K> {
    /// Starts a body.
    pub fn new(key: K) -> Self {
        let piece = key.build_hasher();
        let (pieces, has_too_many) = (Vec::new(), false);
        Self { key, body: 0, body_length: 0, piece, piece_length: 0, pieces, has_too_many }
    }

    /// Adds the next bytes.
    pub fn add(&mut self, mut bytes: &[u8]) {
        self.body_length += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = MAX_PIECE_BYTES - self.piece_length;
            let window = &bytes[..bytes.len().min(room)];
            let end = window.iter().position(|byte| ends_piece(*byte));
            let (taken, rest) = bytes.split_at(end.map_or(window.len(), |end| end + 1));
            self.piece.write(taken);
            self.piece_length += taken.len();
            bytes = rest;
            if end.is_some() || self.piece_length == MAX_PIECE_BYTES {
                self.end_piece(taken.last() == Some(&b'\n'));
            }
        }
    }

    /// Ends the body.
    pub fn finish(mut self) -> HashedBody {
        if self.piece_length > 0 {
            self.end_piece(false);
        }
        let hash = self.key.hash_one((self.body, self.body_length));
        let pieces = (!self.has_too_many).then(|| self.pieces.into());
        HashedBody { hash, pieces }
    }

    fn end_piece(&mut self, ends_line: bool) {
        let hasher = std::mem::replace(&mut self.piece, self.key.build_hasher());
        let length = std::mem::take(&mut self.piece_length);
        let hash = hasher.finish();
        // The hashes look random already. An odd factor loses nothing of the earlier ones.
        self.body = (self.body.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if self.pieces.len() == MAX_PIECES {
            self.has_too_many = true;
            self.pieces = Vec::new();
        }
        if !self.has_too_many {
            self.pieces.push(HashedPiece::new(hash, length, ends_line));
        }
    }
}

/// Returns whether a piece ends after this byte: the marks of HTML, JSON and text that stand around
/// names and tokens.
fn ends_piece(byte: u8) -> bool {
    matches!(byte, b'\n' | b'>' | b'"' | b',' | b';' | b'}')
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use proptest::prelude::*;

    use super::*;

    fn hashed(key: &RandomState, chunks: &[&[u8]]) -> HashedBody {
        let mut splitter = Splitter::new(key.clone());
        chunks.iter().for_each(|chunk| splitter.add(chunk));
        splitter.finish()
    }

    #[test]
    fn pieces_end_at_marks_and_lines() {
        let body = hashed(&RandomState::new(), &[b"<a href=\"/x\">\nend"]);
        let pieces = body.pieces.expect("few pieces");
        let lengths: Vec<_> = pieces.iter().map(|piece| piece.length()).collect();
        assert_eq!(lengths, [9, 3, 1, 1, 3]);
        let lines: Vec<_> = pieces.iter().map(|piece| piece.ends_line()).collect();
        assert_eq!(lines, [false, false, false, true, false]);
    }

    #[test]
    fn a_body_with_too_many_pieces_is_kept_only_as_a_hash() {
        let key = RandomState::new();
        let many = vec![b','; MAX_PIECES + 1];
        let body = hashed(&key, &[&many]);
        assert_eq!(body.pieces, None);
        let fewer = hashed(&key, &[&many[1..]]);
        assert_eq!(fewer.pieces.map(|pieces| pieces.len()), Some(MAX_PIECES));
        assert_ne!(body.hash, fewer.hash);
    }

    #[test]
    fn another_key_gives_other_hashes() {
        let bodies = [RandomState::new(), RandomState::new()].map(|key| hashed(&key, &[b"a,b"]));
        assert_ne!(bodies[0].hash, bodies[1].hash);
        assert_ne!(bodies[0].pieces, bodies[1].pieces);
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_depend_on_how_the_body_arrives(body in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let key = RandomState::new();
            let (left, right) = body.split_at(cut.min(body.len()));
            prop_assert_eq!(hashed(&key, &[left, right]), hashed(&key, &[&body]));
        }

        #[test]
        fn the_pieces_cover_all_bytes_of_the_body(body in prop::collection::vec(any::<u8>(), 0..70_000)) {
            let hashed = hashed(&RandomState::new(), &[&body]);
            let pieces = hashed.pieces.expect("few pieces");
            prop_assert_eq!(pieces.iter().map(|piece| piece.length()).sum::<u64>(), body.len() as u64);
        }
    }
}
