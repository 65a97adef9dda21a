//! The files of a configuration, and errors that point into them.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::hidden_passwords::without_passwords;
use crate::hidden_values::VariableValues;
use crate::include::{IncludedFiles, absolute, read_included};
use crate::placement::Expansions;
use crate::source_file::{SourceFile, file_at, line_seen_from};
use crate::text_file;
use crate::variables::Environment;
use crate::written::Written;

/// The files of a configuration.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    /// The directory that relative paths begin at: that of the main file.
    pub directory: PathBuf,
    included: IncludedFiles,
    values: VariableValues,
}

/// One error of a configuration. It shows `FILE:LINE:COLUMN: message` and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    message: String,
    place: Option<String>,
    /// The offset in the files, in bytes. `None` for an error about a file as a whole.
    offset: Option<usize>,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl ConfigError {
    /// Returns the offset in the files that the error points at, in bytes.
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }
}

/// All errors of a configuration, in the order of the files; at least one.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let line_end = if index > 0 { "\n" } else { "" };
            write!(f, "{line_end}{error}")?;
        }
        Ok(())
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

/// Collects the errors of a configuration, so that a user sees all of them at once.
#[derive(Debug, Default)]
pub struct ErrorCollector(Vec<ConfigError>);

impl ErrorCollector {
    /// Returns the value of `result`, or keeps its error.
    pub fn keep<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Keeps `error`.
    pub fn push(&mut self, error: ConfigError) {
        self.0.push(error);
    }

    /// Returns the errors so far.
    pub fn into_errors(self) -> Vec<ConfigError> {
        self.0
    }

    /// Returns `value` if there was no error and it could be made.
    pub fn finish<T>(mut self, value: Option<T>, source: &ConfigSource) -> Result<T, ConfigErrors> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ if self.0.is_empty() => {
                Err(source.error_in_all("this configuration cannot be used").into())
            }
            _ => {
                self.0.sort_by_key(|error| error.offset);
                self.0.dedup();
                Err(ConfigErrors(self.0))
            }
        }
    }
}

impl ConfigSource {
    /// Reads the file `path`, and the files that it includes. Variables are those of this process.
    pub fn read(path: &Path) -> Result<Self, ConfigErrors> {
        let text = text_file::read_limited(path).and_then(text_file::text);
        let text = text.map_err(|error| ConfigError {
            message: match error.kind() {
                io::ErrorKind::NotFound => format!(
                    "cannot read the configuration: {error}: name one with --config FILE, or let \
                     `kirin init` write one"
                ),
                _ => format!("cannot read the configuration: {error}"),
            },
            place: Some(path.display().to_string()),
            offset: None,
        })?;
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let main = SourceFile::new(path.display().to_string(), text, 0);
        Ok(Self::new(main, Some(path), directory, &|name| std::env::var_os(name)))
    }

    /// Makes the configuration of a text that is in no file. `name` is shown in messages.
    /// Variables are those of this process.
    pub fn from_text(
        name: impl Into<String>,
        directory: impl Into<PathBuf>,
        text: impl Into<String>,
    ) -> Self {
        let main = SourceFile::new(name.into(), text.into(), 0);
        Self::new(main, None, directory.into(), &|name| std::env::var_os(name))
    }

    /// Makes the configuration of the main file `main`, and reads what it includes.
    pub(crate) fn new(
        main: SourceFile,
        path: Option<&Path>,
        directory: PathBuf,
        environment: Environment<'_>,
    ) -> Self {
        let included = read_included(main, path, &directory, environment);
        let values = VariableValues::new(&included.expansions);
        Self { directory, included, values }
    }

    /// Returns the files: the main file, then those that it includes.
    pub fn files(&self) -> &[SourceFile] {
        &self.included.files
    }

    /// Returns the name of the main file.
    pub fn name(&self) -> &str {
        self.files().first().map_or("", |main| &main.name)
    }

    /// Returns the text of the main file, as it is written.
    pub fn text(&self) -> &str {
        self.files().first().map_or("", |main| &main.text)
    }

    /// Returns the paths of the included files, and of the directories in which `include` looks
    /// for files.
    pub fn included_paths(&self) -> &[PathBuf] {
        &self.included.paths
    }

    /// Returns the strings with variables, by their offsets.
    pub(crate) fn expansions(&self) -> &Expansions {
        &self.included.expansions
    }

    /// Returns the errors of `include`.
    pub(crate) fn include_errors(&self) -> impl Iterator<Item = ConfigError> {
        self.included.refused.iter().map(|(span, message)| self.error(span.clone(), message))
    }

    /// Returns the offsets of the strings whose variables cannot be replaced, with the errors.
    pub(crate) fn variable_errors(&self) -> impl Iterator<Item = (usize, ConfigError)> {
        let unexpanded = self.included.unexpanded.iter();
        unexpanded.map(|(span, message)| (span.start, self.error(span.clone(), message)))
    }

    /// Makes an error at `span` of the files. It has no password of an address, and no value of a
    /// variable.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        let (message, file) = (message.into(), file_at(self.files(), span.start));
        // A default has the span 0..0, which is no place in the file.
        let Some(file) = file.filter(|_| !span.is_empty()) else {
            let name = file.map_or_else(|| self.name(), |file| &file.name);
            return self.error_in_file(name, message);
        };
        let own = self.expansions().range(span.clone()).map(|(_, expansion)| expansion);
        let message = self.values.hide(&message, own);
        let shown = file.line_at(span.start).map_or("", |(line, _)| line.trim_end());
        let message = without_passwords(&format!("{message}\n    {shown}"));
        let place = Some(file.place(span.start));
        ConfigError { message, place, offset: Some(span.start) }
    }

    /// Makes an error about a line of another file, which the key at `offset` names.
    pub fn error_in_line(
        &self,
        file: &str,
        number: u32,
        offset: usize,
        message: impl Into<String>,
    ) -> ConfigError {
        let message = self.values.hide(&message.into(), std::iter::empty());
        ConfigError { message, place: Some(format!("{file}:{number}")), offset: Some(offset) }
    }

    /// Returns the line of `offset` as the rest of a message at `from`: `line 3`, or `line 3 of
    /// FILE` if that is another file.
    pub fn line_seen_from(&self, offset: usize, from: usize) -> String {
        line_seen_from(self.files(), offset, from)
    }

    /// Makes an error about the configuration as a whole.
    pub fn error_in_all(&self, message: impl Into<String>) -> ConfigError {
        self.error_in_file(self.name(), message.into())
    }

    fn error_in_file(&self, name: &str, message: String) -> ConfigError {
        let message = self.values.hide(&message, std::iter::empty());
        ConfigError { message, place: Some(name.to_owned()), offset: None }
    }

    /// Returns the absolute path that `path` means in this file.
    ///
    /// The path is absolute so that it means the same in an application, which runs in a directory
    /// of its own.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        absolute(&self.directory.join(path))
    }

    /// Returns the absolute path of the directory that relative paths begin at.
    pub fn absolute_directory(&self) -> PathBuf {
        absolute(&self.directory)
    }

    /// Returns the absolute path of a directory, which must be there.
    pub fn existing_directory(&self, path: &Written<String>) -> Result<PathBuf, ConfigError> {
        self.directory_at(path).map_err(|message| self.error(path.span(), message))
    }

    /// Returns the absolute path of a directory, or the message that it is not there.
    pub fn directory_at(&self, path: &str) -> Result<PathBuf, String> {
        let directory = self.path(path);
        if directory.is_dir() {
            return Ok(directory);
        }
        Err(format!("there is no directory {}", directory.display()))
    }
}
