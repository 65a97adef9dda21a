//! The comparison of the answer that a visitor got with that to the copy of the request.

use super::counters::MirrorResult;

/// The parts of an answer that are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFacts {
    /// The status code.
    pub status: u16,
    /// The length of the body in bytes, without its ignored parts. `None` if it is not known, as
    /// in many answers to HEAD.
    pub length: Option<u64>,
    /// The hash of the body, without its ignored parts. `None` if there is no body.
    pub hash: Option<u64>,
    /// Whether the body is in a content coding. Two encoders may make different bytes of the same
    /// content.
    pub is_coded: bool,
}

impl AnswerFacts {
    /// Compares two answers. The first difference counts.
    pub fn compare(&self, other: &Self) -> MirrorResult {
        if self.status != other.status {
            return MirrorResult::Status;
        }
        let is_coded = self.is_coded || other.is_coded;
        let difference = if differ(self.length, other.length) {
            MirrorResult::Length
        } else if differ(self.hash, other.hash) {
            MirrorResult::Body
        } else {
            return MirrorResult::Equal;
        };
        if is_coded { MirrorResult::Coded } else { difference }
    }
}

/// Returns whether two values are known and differ.
fn differ(one: Option<u64>, other: Option<u64>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_counts() {
        let answer =
            |status, length, hash, is_coded| AnswerFacts { status, length, hash, is_coded };
        let page = answer(200, Some(5), Some(7), false);
        for (other, expected) in [
            (page.clone(), MirrorResult::Equal),
            (answer(500, Some(5), Some(7), false), MirrorResult::Status),
            (answer(500, Some(6), Some(8), true), MirrorResult::Status),
            (answer(200, Some(6), Some(8), false), MirrorResult::Length),
            (answer(200, Some(5), Some(8), false), MirrorResult::Body),
            (answer(200, None, None, false), MirrorResult::Equal),
            (answer(200, Some(6), None, false), MirrorResult::Length),
            (answer(200, Some(6), Some(8), true), MirrorResult::Coded),
            (answer(200, Some(5), Some(8), true), MirrorResult::Coded),
            (answer(200, Some(5), Some(7), true), MirrorResult::Equal),
        ] {
            assert_eq!(page.compare(&other), expected, "{other:?}");
            assert_eq!(other.compare(&page), expected, "{other:?}");
        }
    }
}
