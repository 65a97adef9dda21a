//! A copy of a request body that its reader takes, for a second server.

use std::cell::{Cell, RefCell};

use bytes::Bytes;

/// The bytes of a request body, copied while they are read.
#[derive(Debug)]
pub struct BodyCopy {
    limit_bytes: usize,
    /// `None` after a body that is longer than the limit.
    bytes: RefCell<Option<Vec<u8>>>,
    has_ended: Cell<bool>,
}

impl BodyCopy {
    /// Creates a copy of at most `limit_bytes`. Nothing is kept of a longer body.
    pub fn new(limit_bytes: usize) -> Self {
        let bytes = RefCell::new(Some(Vec::new()));
        Self { limit_bytes, bytes, has_ended: Cell::new(false) }
    }

    /// Adds bytes.
    pub(crate) fn add(&self, more: &[u8]) {
        let mut bytes = self.bytes.borrow_mut();
        match &mut *bytes {
            Some(bytes) if bytes.len() + more.len() <= self.limit_bytes => {
                bytes.extend_from_slice(more);
            }
            _ => *bytes = None,
        }
    }

    /// Notes that the body has ended.
    pub(crate) fn end(&self) {
        self.has_ended.set(true);
    }

    /// Hands over the complete body. Returns `None` if it was too long, or not read to its end.
    pub fn take(&self) -> Option<Bytes> {
        let bytes = self.bytes.take().filter(|_| self.has_ended.get())?;
        Some(Bytes::from(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_body_within_the_limit_is_handed_over() {
        for (pieces, has_ended, expected) in [
            (&[][..], true, Some("")),
            (&["abc", "de"], true, Some("abcde")),
            (&["abc", "de"], false, None),
            (&["abc", "def"], true, None),
            (&["abcdef", "g"], true, None),
        ] {
            let copy = BodyCopy::new(5);
            pieces.iter().for_each(|piece| copy.add(piece.as_bytes()));
            if has_ended {
                copy.end();
            }
            let expected = expected.map(Bytes::from);
            assert_eq!(copy.take(), expected, "{pieces:?} {has_ended}");
        }
    }
}
