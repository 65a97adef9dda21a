//! The text of a configuration, and errors that point into it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::hidden_passwords::without_passwords;
use crate::written::Written;

/// The text of a configuration and where it came from.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    /// The name of the file, for messages.
    pub name: String,
    /// The directory that relative paths begin at.
    pub directory: PathBuf,
    /// The TOML text.
    pub text: String,
}

/// One error of a configuration. It shows `FILE:LINE:COLUMN: message` and the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    message: String,
    place: Option<String>,
    /// The offset in the text, in bytes. `None` for an error about the file as a whole.
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
    /// Returns the offset in the text that the error points at, in bytes.
    pub fn offset(&self) -> Option<usize> {
        self.offset
    }
}

/// All errors of a configuration, in the order of the file; at least one.
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
    /// Reads the file `path`.
    pub fn read(path: &Path) -> Result<Self, ConfigErrors> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
            message: format!("cannot read the configuration: {error}"),
            place: Some(path.display().to_string()),
            offset: None,
        })?;
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self { name: path.display().to_string(), directory, text })
    }

    /// Makes an error at `span` of the text. It has no password of an address.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        // A default has the span 0..0, which is no place in the file.
        if span.is_empty() {
            return self.error_in_all(message);
        }
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line = self.line_of(span.start);
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let shown = self.text.lines().nth(line - 1).unwrap_or("").trim_end();
        let message = without_passwords(&format!("{}\n    {shown}", message.into()));
        let place = Some(format!("{}:{line}:{column}", self.name));
        ConfigError { message, place, offset: Some(span.start) }
    }

    /// Returns the number of the line with this offset of the text, from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        self.text.get(..offset).unwrap_or(&self.text).matches('\n').count() + 1
    }

    /// Returns the line with this offset of the text, and the offset in the line.
    pub fn line_at(&self, offset: usize) -> Option<(&str, usize)> {
        let begin = self.text.get(..offset)?.rfind('\n').map_or(0, |end| end + 1);
        let line = self.text.get(begin..)?.lines().next()?;
        Some((line, offset - begin))
    }

    /// Makes an error about the file as a whole.
    pub fn error_in_all(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { message: message.into(), place: Some(self.name.clone()), offset: None }
    }

    /// Returns the absolute path that `path` means in this file.
    ///
    /// The path is absolute so that it means the same in an application, which runs in a directory
    /// of its own.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = self.directory.join(path);
        std::path::absolute(&path).unwrap_or(path)
    }

    /// Returns the absolute path of the directory that relative paths begin at.
    pub fn absolute_directory(&self) -> PathBuf {
        std::path::absolute(&self.directory).unwrap_or_else(|_| self.directory.clone())
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
