//! What operators ask all machines, and the names of the records for it.
//!
//! A question is the number of its moment, which is about the origin's time in microseconds. An
//! answer begins with the number of the question. So several operators may ask at once: a question
//! replaces the one before it, and an answer to it is one to both, because its number is greater.

use std::time::Duration;

/// How long questions and answers stay at the origin.
pub const LASTING: Duration = Duration::from_secs(10);

/// The least time between the beginnings of two answers of a machine to questions of one kind.
pub const ANSWER_INTERVAL: Duration = Duration::from_millis(500);

/// What operators ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineQuestion {
    /// The status.
    Status,
    /// The numbers of `kirin top`.
    Top,
}

impl MachineQuestion {
    /// All questions.
    pub const ALL: [Self; 2] = [Self::Status, Self::Top];

    /// Returns the word in the names of its records.
    const fn word(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Top => "top",
        }
    }

    /// Returns the name of the record with the question.
    pub fn record(self) -> Vec<u8> {
        format!("question/{}", self.word()).into_bytes()
    }

    /// Returns the name of the record in which the machine `id` answers.
    pub fn answer_record(self, id: &str) -> Vec<u8> {
        format!("machine/{id}/{}", self.word()).into_bytes()
    }
}
