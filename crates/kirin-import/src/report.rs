//! What an import gives.

use std::fmt::{self, Display, Formatter};

use crate::section::Section;

/// What an import gives.
#[derive(Debug, Default)]
pub struct Import {
    /// The sections of the `kirin.toml`, in the order of the file.
    pub sections: Vec<Section>,
    /// A note on each directive that was read, in the order of reading.
    pub notes: Vec<Note>,
}

/// What became of one directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Where it stands.
    pub place: Place,
    /// The directive, on one line, without the block that it opens.
    pub directive: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path of the file, as the importer was given it or as an include names it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// What became of a directive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The `kirin.toml` says the same. The text may add what differs in small things; mostly it is
    /// empty.
    Carried(String),
    /// Kirin does it without being told. The text says how.
    ByItself(String),
    /// The `kirin.toml` does not have it. The text says why, and what to do instead.
    LeftOut(String),
}

impl Import {
    /// Returns the text of the `kirin.toml`.
    pub fn config(&self) -> String {
        let sections: Vec<_> = self.sections.iter().map(Section::to_string).collect();
        sections.join("\n")
    }

    /// Returns how many directives were left out.
    pub fn left_out(&self) -> usize {
        self.notes.iter().filter(|note| matches!(note.outcome, Outcome::LeftOut(_))).count()
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
