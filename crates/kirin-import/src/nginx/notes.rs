//! What happened to each directive.
//!
//! A directive of `http` is read once for each location that inherits it. So its note is put
//! together of several findings: what was left out counts most, then what was carried over.

use std::cell::RefCell;

use super::directive::Directive;
use crate::report::{NOT_PROTECTED, Note, Outcome, Place};

/// The most different texts in one note.
const MAX_TEXTS: usize = 4;

/// The notes on all directives.
#[derive(Debug, Default)]
pub struct Notes {
    entries: RefCell<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    place: Place,
    shown: String,
    kind: Kind,
    texts: Vec<String>,
}

/// What happened, in ascending order of weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Nothing,
    ByItself,
    Carried,
    LeftOut,
}

impl Notes {
    /// Adds a directive, and returns its number.
    pub fn add(&self, directive: &Directive) -> usize {
        let mut entries = self.entries.borrow_mut();
        entries.push(Entry {
            place: directive.place(),
            shown: directive.shown(),
            kind: Kind::Nothing,
            texts: Vec::new(),
        });
        entries.len() - 1
    }

    /// Returns the number of directives.
    pub fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Returns whether nothing was found about a directive yet.
    pub fn is_open(&self, directive: &Directive) -> bool {
        let entries = self.entries.borrow();
        entries.get(directive.number).is_some_and(|entry| entry.kind == Kind::Nothing)
    }

    /// Returns whether a directive was left out.
    pub fn is_left_out(&self, directive: &Directive) -> bool {
        let entries = self.entries.borrow();
        entries.get(directive.number).is_some_and(|entry| entry.kind == Kind::LeftOut)
    }

    /// Notes that a directive was carried over. `text` adds what differs, and may be empty.
    pub fn carried(&self, directive: &Directive, text: impl Into<String>) {
        self.find(directive, Kind::Carried, text.into());
    }

    /// Notes that Kirin does it without being told.
    pub fn by_itself(&self, directive: &Directive, text: impl Into<String>) {
        self.find(directive, Kind::ByItself, text.into());
    }

    /// Notes that the `kirin.toml` does not have it, and what to write instead.
    pub fn left_out(&self, directive: &Directive, text: impl Into<String>) {
        self.find(directive, Kind::LeftOut, text.into());
    }

    /// Notes that a protection is not there any more.
    pub fn protection_lost(&self, directive: &Directive, text: impl AsRef<str>) {
        self.left_out(directive, format!("{NOT_PROTECTED}: {}", text.as_ref()));
    }

    fn find(&self, directive: &Directive, kind: Kind, text: String) {
        let mut entries = self.entries.borrow_mut();
        // A server that the importer itself has put around locations has no entry.
        let Some(entry) = entries.get_mut(directive.number) else { return };
        if kind > entry.kind {
            entry.kind = kind;
            entry.texts.clear();
        }
        let is_new = !text.is_empty() && !entry.texts.contains(&text);
        if kind == entry.kind && is_new && entry.texts.len() < MAX_TEXTS {
            // What is lost comes first, so that it cannot be overlooked.
            let at = if text.starts_with(NOT_PROTECTED) { 0 } else { entry.texts.len() };
            entry.texts.insert(at, text);
        }
    }

    /// Returns the notes in the order of reading.
    pub fn finish(self) -> Vec<Note> {
        let note = |entry: Entry| {
            let text = entry.texts.join("; ");
            let outcome = match entry.kind {
                Kind::ByItself => Outcome::ByItself(text),
                Kind::Carried => Outcome::Carried(text),
                Kind::LeftOut => Outcome::LeftOut(text),
                Kind::Nothing => Outcome::LeftOut("it has no effect where it stands".into()),
            };
            Note { place: entry.place, directive: entry.shown, outcome }
        };
        self.entries.into_inner().into_iter().map(note).collect()
    }
}
