//! Reading a configuration, and errors that say where and what.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Config;

/// The text of a configuration and where it came from; errors point into it.
#[derive(Debug)]
pub struct Source {
    /// Name for messages.
    pub name: String,
    /// What relative paths are relative to.
    pub directory: PathBuf,
    /// The TOML text.
    pub text: String,
}

/// A configuration that is not used. Shows `FILE:LINE:COLUMN: message` and the line.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    message: String,
    place: Option<String>,
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

impl Source {
    /// Reads the file `path`.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
            message: format!("cannot read the configuration: {error}"),
            place: Some(path.display().to_string()),
        })?;
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self { name: path.display().to_string(), directory, text })
    }

    /// An error at `span` of the text.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> ConfigError {
        // A default has the span 0..0, which is no place in the file.
        if span.is_empty() {
            return ConfigError { message: message.into(), place: Some(self.name.clone()) };
        }
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let shown = self.text.lines().nth(line - 1).unwrap_or("").trim_end();
        let message = format!("{}\n    {shown}", message.into());
        ConfigError { message, place: Some(format!("{}:{line}:{column}", self.name)) }
    }

    /// An error about the file as a whole.
    pub fn error_in_all(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { message: message.into(), place: Some(self.name.clone()) }
    }
}

/// Parses the text. Unknown keys, wrong types and bad values are errors.
pub fn load(source: &Source) -> Result<Config, ConfigError> {
    toml::from_str(&source.text).map_err(|error| {
        let message = error.message().trim().replace('\n', "; ");
        match error.span() {
            Some(span) => source.error(span.start..span.end.max(span.start + 1), message),
            None => source.error_in_all(message),
        }
    })
}
