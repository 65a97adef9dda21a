//! The words of a slot that say which worker has a request, and how far it is.

/// The bits of a number of a slot or an owner.
const NUMBER_BITS: u32 = 16;

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
    #[cfg(any(test, feature = "worker"))]
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
