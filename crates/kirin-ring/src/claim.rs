//! The words of a slot that say which worker has a request, and how far it is.

/// The bits of a number of a slot or an owner.
const NUMBER_BITS: u32 = 16;

/// The bits of a position beside a number.
pub(crate) const POSITION_BITS: u32 = u64::BITS - NUMBER_BITS;

/// The owner of a request that the front has withdrawn.
const WITHDRAWN: u64 = 0xFFFF;

/// The worker that has the request in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The request is in the queue.
    Nobody,
    /// The worker in this seat has it.
    Seat(u16),
    /// The front has taken it back.
    Withdrawn,
}

impl Claim {
    /// Returns the word of a claim.
    pub(crate) fn word(self, position: u64) -> u64 {
        let owner = match self {
            Self::Nobody => 0,
            Self::Seat(seat) => u64::from(seat) + 1,
            Self::Withdrawn => WITHDRAWN,
        };
        position << NUMBER_BITS | owner
    }

    /// Returns the claim in a word, if it is one of the request at `position`.
    pub(crate) fn parse(word: u64, position: u64) -> Option<Self> {
        if word >> NUMBER_BITS != position {
            return None;
        }
        Some(match word & WITHDRAWN {
            0 => Self::Nobody,
            WITHDRAWN => Self::Withdrawn,
            // It is at least 1 and at most 65,534.
            owner => Self::Seat((owner - 1) as u16),
        })
    }
}

/// Returns the word of the cell for `position`.
pub(crate) fn cell(position: u64, slot: u16) -> u64 {
    position << NUMBER_BITS | u64::from(slot)
}

/// Returns the slot in a cell, if the cell is for `position`.
pub(crate) fn slot_of_cell(word: u64, position: u64) -> Option<u16> {
    (word >> NUMBER_BITS == position).then_some(word as u16)
}

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The application has not seen it.
    Queued,
    /// The application works on it.
    Running,
    /// The answer is in the slot.
    Answered,
    /// The answer is in the slot, and the worker cleans up.
    AnsweredBeforeCleanup,
    /// The worker has cleaned up.
    CleanedUp,
    /// The request or its answer comes over the worker's connection.
    OverConnection,
}

impl Phase {
    /// Returns the phase in a word. A number that no worker should write is that of a request that
    /// the application works on: it has the strictest rules.
    pub(crate) fn parse(word: u64) -> Self {
        match word {
            0 => Self::Queued,
            2 => Self::Answered,
            3 => Self::CleanedUp,
            4 => Self::OverConnection,
            5 => Self::AnsweredBeforeCleanup,
            _ => Self::Running,
        }
    }

    /// Returns the word of the phase.
    pub(crate) fn word(self) -> u64 {
        match self {
            Self::Queued => 0,
            Self::Running => 1,
            Self::Answered => 2,
            Self::CleanedUp => 3,
            Self::OverConnection => 4,
            Self::AnsweredBeforeCleanup => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn claims_are_the_words_of_the_protocol() {
        for (claim, position, word) in [
            (Claim::Nobody, 1, 0x1_0000),
            (Claim::Seat(0), 1, 0x1_0001),
            (Claim::Seat(2), 0xABCD, 0xABCD_0003),
            (Claim::Seat(65_532), 1, 0x1_FFFD),
            (Claim::Withdrawn, 1, 0x1_FFFF),
            (Claim::Nobody, (1 << 48) - 1, 0xFFFF_FFFF_FFFF_0000),
        ] {
            assert_eq!(claim.word(position), word, "{claim:?} of {position}");
            assert_eq!(Claim::parse(word, position), Some(claim), "{word:x}");
            assert_eq!(Claim::parse(word, position + 1), None, "{word:x}");
            assert_eq!(Claim::parse(word, position - 1), None, "{word:x}");
        }
    }

    #[test]
    fn a_position_of_more_than_48_bits_has_no_claims_and_no_cell() {
        // Only a worker that lies writes such a head.
        let position = 1 << 48 | 5;
        assert_eq!(Claim::parse(Claim::Seat(1).word(position), position), None);
        assert_eq!(slot_of_cell(cell(position, 3), position), None);
    }

    #[test]
    fn phases_are_the_words_of_the_protocol() {
        let phases = [
            Phase::Queued,
            Phase::Running,
            Phase::Answered,
            Phase::CleanedUp,
            Phase::OverConnection,
            Phase::AnsweredBeforeCleanup,
        ];
        for (word, phase) in phases.into_iter().enumerate() {
            assert_eq!((phase.word(), Phase::parse(word as u64)), (word as u64, phase));
        }
        for word in [6, 1 << 32, u64::MAX] {
            assert_eq!(Phase::parse(word), Phase::Running, "{word}");
        }
    }

    proptest! {
        #[test]
        fn a_word_is_a_claim_of_one_position_at_most(word: u64, position in 0u64..1 << 48) {
            prop_assert_eq!(Claim::parse(word, position).is_some(), word >> 16 == position);
            if let Some(claim) = Claim::parse(word, word >> 16) {
                prop_assert_eq!(claim.word(word >> 16), word);
            }
        }

        #[test]
        fn a_cell_has_the_slot_of_its_position(position in 0u64..1 << 48, slot: u16, other: u64) {
            let word = cell(position, slot);
            prop_assert_eq!(slot_of_cell(word, position), Some(slot));
            prop_assert_eq!(slot_of_cell(word, other).is_some(), other == position);
        }
    }
}
