//! For tests of importers: files in memory, and an import as a text.

use std::collections::HashMap;

use crate::error::ImportError;
use crate::files::Files;
use crate::report::{Import, Outcome};

/// Files in memory.
#[derive(Default)]
pub(crate) struct MemoryFiles(HashMap<String, String>);

impl MemoryFiles {
    /// Returns files with these paths and texts.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &str) -> Result<String, String> {
        self.0.get(path).cloned().ok_or_else(|| "there is no such file".to_owned())
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
        let star = pattern.contains('*');
        let matches = |path: &&String| {
            if star { path.starts_with(start) && path.ends_with(end) } else { *path == pattern }
        };
        let mut found: Vec<_> = self.0.keys().filter(matches).cloned().collect();
        found.sort();
        found
    }
}

/// An importer.
pub(crate) type Importer = fn(&str, &dyn Files) -> Result<Import, ImportError>;

/// Imports a text as the file `f`.
pub(crate) fn imported(importer: Importer, text: &str) -> Import {
    let files = MemoryFiles::new(&[("f", text)]);
    importer("f", &files).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Checks the `kirin.toml` of a text, and its notes as `notes` writes them.
pub(crate) fn check(importer: Importer, text: &str, config: &str, expected: &str) {
    let import = imported(importer, text);
    let (found, found_notes) = (import.config(), notes(&import));
    assert_eq!(found.trim(), config.trim(), "of {text}\nits notes:\n{found_notes}");
    assert_eq!(found_notes.trim(), expected.trim(), "of {text}");
}

/// Checks that the `kirin.toml` of a text has these lines and texts, each somewhere.
pub(crate) fn check_parts(importer: Importer, text: &str, parts: &[&str]) {
    let import = imported(importer, text);
    let found = format!("{}\n{}", import.config(), long_notes(&import));
    for part in parts {
        assert!(found.contains(part), "`{part}` is missing\nof {text}\nin\n{found}");
    }
}

/// Returns a line for each note: the line, `+` for carried, `=` for by itself, `-` for left out,
/// and the directive.
pub(crate) fn notes(import: &Import) -> String {
    let line = |note: &crate::Note| {
        let (sign, _) = sign(&note.outcome);
        format!("{} {sign} {}", note.place.line, note.directive)
    };
    import.notes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn long_notes(import: &Import) -> String {
    let line = |note: &crate::Note| {
        let (sign, text) = sign(&note.outcome);
        format!("{} {sign} {}: {text}", note.place.line, note.directive)
    };
    import.notes.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn sign(outcome: &Outcome) -> (char, &str) {
    match outcome {
        Outcome::Carried(text) => ('+', text),
        Outcome::ByItself(text) => ('=', text),
        Outcome::LeftOut(text) => ('-', text),
    }
}
