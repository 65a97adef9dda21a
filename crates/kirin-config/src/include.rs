//! Reads the files that a configuration includes.
//!
//! A file comes before the files that it includes, and those in the order of `include`. A pattern
//! gives its files in the order of their names. All paths are relative to the directory of the main
//! file, also those in included files.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_spanned::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file_pattern::{is_pattern, matching_files};
use crate::placement::{Expansions, for_each_string};
use crate::source_file::{SourceFile, line_seen_from};
use crate::text_file::{self, read_regular};
use crate::variables::{Environment, expand};

/// The most files of a configuration.
const MAX_FILES: usize = 10_000;

/// The most errors of `include` that are reported.
const MAX_ERRORS: usize = 50;

/// A message about the bytes at these offsets.
pub type Refusal = (Range<usize>, String);

/// The files of a configuration.
#[derive(Clone, Debug)]
pub struct IncludedFiles {
    /// The main file, then those that it includes.
    pub files: Vec<SourceFile>,
    /// The strings with variables.
    pub expansions: Expansions,
    /// The strings whose variables cannot be replaced.
    pub unexpanded: Vec<Refusal>,
    /// What is wrong with `include`.
    pub refused: Vec<Refusal>,
    /// The included files, and the directories in which patterns look for files.
    pub paths: Vec<PathBuf>,
}

/// Reads what the file `main` includes. `main_path` is its path, if it is a file.
pub fn read_included(
    main: SourceFile,
    main_path: Option<&Path>,
    directory: &Path,
    environment: Environment<'_>,
) -> IncludedFiles {
    let mut reading = Reading {
        directory,
        environment,
        found: IncludedFiles {
            files: Vec::new(),
            expansions: Expansions::new(),
            unexpanded: Vec::new(),
            refused: Vec::new(),
            paths: Vec::new(),
        },
        includers: vec![None],
        numbers: HashMap::new(),
        waiting: Vec::new(),
    };
    if let Some(path) = main_path.and_then(|path| path.canonicalize().ok()) {
        reading.numbers.insert(path, 0);
    }
    reading.take(main);
    while let Some(next) = reading.waiting.pop() {
        if reading.found.refused.len() >= MAX_ERRORS {
            break;
        }
        if reading.found.files.len() >= MAX_FILES {
            reading.refuse(&next.at.span, format!("more than {MAX_FILES} files"));
            break;
        }
        reading.read(next);
    }
    reading.found
}

/// Where a file is included.
#[derive(Clone)]
struct IncludedAt {
    /// The number of the file that includes it.
    file: usize,
    /// The entry of `include`.
    span: Range<usize>,
}

/// A file that is to be read.
struct WaitingFile {
    path: PathBuf,
    at: IncludedAt,
}

struct Reading<'a> {
    directory: &'a Path,
    environment: Environment<'a>,
    found: IncludedFiles,
    /// Where each file is included.
    includers: Vec<Option<IncludedAt>>,
    /// The numbers of the files by their paths without symbolic links.
    numbers: HashMap<PathBuf, usize>,
    /// The files that are still to be read; the next one is the last.
    waiting: Vec<WaitingFile>,
}

impl Reading<'_> {
    /// Reads a file, unless it was read already.
    fn read(&mut self, next: WaitingFile) {
        let WaitingFile { path, at } = next;
        let name = shown(&path);
        let identity = match path.canonicalize() {
            Ok(identity) => identity,
            Err(error) => return self.refuse(&at.span, cannot_read(&name, &error)),
        };
        if let Some(number) = self.numbers.get(&identity) {
            let message = self.read_before(*number, &at);
            return self.refuse(&at.span, message);
        }
        let text = match read_regular(&path).and_then(text_file::text) {
            Ok(text) => text,
            Err(error) => return self.refuse(&at.span, cannot_read(&name, &error)),
        };
        let begin = self.found.files.last().map_or(0, SourceFile::next_begin);
        self.numbers.insert(identity, self.found.files.len());
        self.found.paths.push(absolute(&path));
        self.includers.push(Some(at));
        self.take(SourceFile::new(name, text, begin));
    }

    /// Takes the text of a file: finds its variables, and the files that it includes.
    fn take(&mut self, file: SourceFile) {
        // `load` reports errors of the syntax.
        let (table, _) = DeTable::parse_recoverable(&file.text);
        let first_unexpanded = self.found.unexpanded.len();
        for_each_string(table.get_ref(), &mut |key, span, text| {
            let span = span.start + file.begin..span.end + file.begin;
            match expand(text, self.environment) {
                Ok(None) => {}
                Ok(Some(expansion)) => {
                    self.found.expansions.insert(span.start, expansion);
                }
                Err(error) => self.found.unexpanded.push((span, format!("`{key}`: {error}"))),
            }
        });
        let number = self.found.files.len();
        let mut included = Vec::new();
        if let Some(DeValue::Array(entries)) = table.get_ref().get("include").map(Spanned::get_ref)
        {
            for entry in entries {
                let Some(written) = entry.get_ref().as_str() else { continue };
                let span = entry.span().start + file.begin..entry.span().end + file.begin;
                let expanded = self.found.expansions.get(&span.start);
                let text = expanded.map_or(written, |expansion| &expansion.text).to_owned();
                let is_here = |(at, _): &Refusal| at.start == span.start;
                match self.found.unexpanded[first_unexpanded..].iter().position(is_here) {
                    Some(index) => {
                        // All keys of a file are missing, and not only a value.
                        let refusal = self.found.unexpanded.swap_remove(first_unexpanded + index);
                        self.found.refused.push(refusal);
                    }
                    None => {
                        included.extend(self.files_of(&text, IncludedAt { file: number, span }))
                    }
                }
            }
        }
        self.found.files.push(file);
        self.waiting.extend(included.into_iter().rev());
    }

    /// Returns the files of an entry of `include`.
    fn files_of(&mut self, entry: &str, at: IncludedAt) -> Vec<WaitingFile> {
        let waiting = |path| WaitingFile { path, at: at.clone() };
        if !is_pattern(entry) {
            return vec![waiting(self.directory.join(entry))];
        }
        match self.matching(entry) {
            Ok(paths) => paths.into_iter().map(waiting).collect(),
            Err(message) => {
                self.refuse(&at.span, message);
                Vec::new()
            }
        }
    }

    /// Returns the files that a pattern matches, in the order of their names.
    fn matching(&mut self, entry: &str) -> Result<Vec<PathBuf>, String> {
        if entry.contains("**") {
            return Err(format!("`{entry}` has `**`, but `*` matches names in one directory"));
        }
        let found = matching_files(self.directory, entry)
            .map_err(|(directory, error)| cannot_read(&shown(&directory), &error))?;
        self.found.paths.extend(found.directories.iter().map(|path| absolute(path)));
        Ok(found.files)
    }

    /// Returns the message that the file with this number is included again.
    fn read_before(&self, number: usize, at: &IncludedAt) -> String {
        let name = |number: usize| self.found.files[number].name.as_str();
        let mut circle = vec![name(number)];
        let mut includer = Some(at.file);
        while let Some(file) = includer {
            circle.push(name(file));
            if file == number {
                circle.reverse();
                return format!("files include each other in a circle: {}", circle.join(", "));
            }
            includer = self.includers[file].as_ref().map(|at| at.file);
        }
        let first = self.includers[number].as_ref().map_or(0, |first| first.span.start);
        let line = line_seen_from(&self.found.files, first, at.span.start);
        format!("{} is included twice; the first time is on {line}", name(number))
    }

    fn refuse(&mut self, span: &Range<usize>, message: String) {
        self.found.refused.push((span.clone(), format!("`include`: {message}")));
    }
}

fn cannot_read(name: &str, error: &io::Error) -> String {
    format!("cannot read {name}: {error}")
}

/// Returns a path as messages show it.
fn shown(path: &Path) -> String {
    path.strip_prefix(".").unwrap_or(path).display().to_string()
}

/// Returns the absolute path; the path itself if the working directory is gone.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
#[path = "include_tests.rs"]
pub(super) mod tests;
