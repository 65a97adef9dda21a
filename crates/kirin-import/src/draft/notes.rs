//! The notes of an import while it is made.

use std::collections::HashSet;

use crate::report::{Note, Outcome, Place};

/// The longest text of a directive in a note, in characters.
const LONGEST_DIRECTIVE: usize = 200;

/// The notes of an import, in the order of reading.
///
/// What is read several times, because several parts lead to it, has its notes once.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Vec<Note>,
    known: HashSet<Note>,
}

impl Notes {
    /// Notes that the `kirin.toml` says the same.
    pub(crate) fn carried(&mut self, place: &Place, directive: &str, text: &str) {
        self.add(place, directive, Outcome::Carried(text.to_owned()));
    }

    /// Notes that Kirin does it without being told.
    pub(crate) fn by_itself(&mut self, place: &Place, directive: &str, text: &str) {
        self.add(place, directive, Outcome::ByItself(text.to_owned()));
    }

    /// Notes that the `kirin.toml` does not have it.
    pub(crate) fn left_out(&mut self, place: &Place, directive: &str, text: &str) {
        self.add(place, directive, Outcome::LeftOut(text.to_owned()));
    }

    /// Notes a directive that the importer does not know.
    pub(crate) fn unknown(&mut self, place: &Place, directive: &str) {
        self.left_out(place, directive, "not known here");
    }

    /// Adds a note with the directive on one line.
    pub(crate) fn add(&mut self, place: &Place, directive: &str, outcome: Outcome) {
        let directive = one_line(directive);
        let note = Note { place: place.clone(), directive, outcome };
        if self.known.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// Returns the notes.
    pub(crate) fn into_vec(self) -> Vec<Note> {
        self.notes
    }
}

/// Returns a text on one line, and shortened if it is long.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == LONGEST_DIRECTIVE {
            line.push('…');
            break;
        }
        line.push(if character.is_control() { ' ' } else { character });
    }
    line
}
