//! What an import gives.

use std::fmt::{self, Display, Formatter};

use crate::section::Section;

const CARRIED: &str = "carried";
const BY_ITSELF: &str = "by itself";
const LEFT_OUT: &str = "left out";

/// The widest column of places. A longer place moves the rest of its line.
const MAX_PLACE_COLUMNS: usize = 50;

/// The widest column of directives. A longer directive moves the rest of its line.
const MAX_DIRECTIVE_COLUMNS: usize = 50;

/// What an import gives.
#[derive(Debug, Default)]
pub struct Import {
    /// The sections of the `kirin.toml`, in the order of the file.
    pub sections: Vec<Section>,
    /// A note on each directive that was read, in the order of reading.
    pub notes: Vec<Note>,
    /// The files beside the `kirin.toml` that it names and that are not there yet.
    pub files: Vec<ImportedFile>,
}

/// A file beside the `kirin.toml`: a script, or a table of redirects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedFile {
    /// Its name, without a directory.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// What became of one directive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Note {
    /// Where it stands.
    pub place: Place,
    /// The directive, on one line, without the block that it opens.
    pub directive: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The path of the file, as the importer was given it or as an include names it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// What became of a directive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The `kirin.toml` says the same. The text may add what differs in small things; mostly it is
    /// empty.
    Carried(String),
    /// Kirin does it without being told. The text says how.
    ByItself(String),
    /// The `kirin.toml` does not have it. The text says why, and what to do instead.
    LeftOut(String),
}

/// What a note says about a directive that keeps visitors out and that is not carried over.
pub const NOT_PROTECTED: &str = "PROTECTION NOT CARRIED OVER";

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

    /// Returns the report: a line for each directive, and a last line with the counts.
    pub fn report(&self) -> String {
        let places: Vec<String> = self.notes.iter().map(|note| note.place.to_string()).collect();
        let width = |longest: usize, limit: usize| longest.min(limit);
        let of_places = places.iter().map(|place| place.chars().count()).max().unwrap_or(0);
        let shown = self.notes.iter().map(|note| note.directive.chars().count());
        let of_places = width(of_places, MAX_PLACE_COLUMNS);
        let of_directives = width(shown.max().unwrap_or(0), MAX_DIRECTIVE_COLUMNS);
        let mut report = String::new();
        for (note, place) in self.notes.iter().zip(&places) {
            let line = format!(
                "{place:of_places$}  {:9}  {:of_directives$}  {}",
                note.outcome.word(),
                note.directive,
                note.outcome.text(),
            );
            // The configuration may have characters that a terminal obeys.
            report.push_str(line.replace(char::is_control, " ").trim_end());
            report.push('\n');
        }
        report.push_str(&self.counts());
        report
    }

    /// Returns the line with the counts, and one about directives that keep visitors out, if some
    /// are not carried over.
    fn counts(&self) -> String {
        let count =
            |word: &str| self.notes.iter().filter(|note| note.outcome.word() == word).count();
        let mut counts = format!(
            "{} directives: {} carried over, {} done by Kirin itself, {} left out\n",
            self.notes.len(),
            count(CARRIED),
            count(BY_ITSELF),
            count(LEFT_OUT),
        );
        let is_unprotected = |note: &&Note| note.outcome.text().contains(NOT_PROTECTED);
        let unprotected = self.notes.iter().filter(is_unprotected).count();
        if unprotected > 0 {
            counts += &format!("read first the lines with {NOT_PROTECTED}: {unprotected}\n");
        }
        counts
    }
}

impl Outcome {
    /// Returns the word for it in a report.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Carried(_) => CARRIED,
            Self::ByItself(_) => BY_ITSELF,
            Self::LeftOut(_) => LEFT_OUT,
        }
    }

    /// Returns what the report says about it, which may be empty.
    pub fn text(&self) -> &str {
        match self {
            Self::Carried(text) | Self::ByItself(text) | Self::LeftOut(text) => text,
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_columns_and_counts() {
        let note = |line, directive: &str, outcome| Note {
            place: Place { file: "nginx.conf".into(), line },
            directive: directive.into(),
            outcome,
        };
        let import = Import {
            sections: Vec::new(),
            files: Vec::new(),
            notes: vec![
                note(9, "listen 80;", Outcome::Carried(String::new())),
                note(10, "sendfile on;", Outcome::ByItself("always".into())),
                note(11, "x;", Outcome::LeftOut("not\nknown\u{1b}".into())),
            ],
        };
        let expected = "\
nginx.conf:9   carried    listen 80;
nginx.conf:10  by itself  sendfile on;  always
nginx.conf:11  left out   x;            not known
3 directives: 1 carried over, 1 done by Kirin itself, 1 left out
";
        assert_eq!(import.report(), expected);
        let outcome = Outcome::LeftOut(format!("{NOT_PROTECTED}: not known"));
        let import = Import { notes: vec![note(9, "deny all;", outcome)], ..Import::default() };
        assert!(
            import
                .report()
                .ends_with("\nread first the lines with PROTECTION NOT CARRIED OVER: 1\n")
        );
    }
}
