//! The kinds of places: how each is written in `try` of a route, and what it can do.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::opening::{Opening, PlaceError};
use super::place::Place;

/// The name of the place with the pages of the store.
pub const STORE: &str = "store";

/// A kind of place.
pub struct PlaceKind {
    /// The word in `try`.
    pub name: &'static str,
    /// The argument after the word and a colon, as error messages show it, such as `DIR`. `None` if
    /// the place has none.
    pub argument: Option<&'static str>,
    /// Whether the place runs code, which can make a page again.
    pub runs_code: bool,
    /// Whether all places of this kind answer every request.
    pub answers_all: bool,
    /// The keys of a route that mean nothing without such a place.
    pub keys: &'static [&'static str],
    /// Reads the argument, which is empty if the place has none. An error is a message for the
    /// user.
    pub read: fn(&str, &dyn Arguments) -> ReadPlace,
}

/// A place with its argument, or a message for the user.
pub type ReadPlace = Result<Arc<dyn OpenPlace>, String>;

/// The files, applications and upstreams that arguments of places name. An error is a message for
/// the user.
pub trait Arguments {
    /// Returns the absolute path of a directory, which must be there.
    fn directory(&self, path: &str) -> Result<PathBuf, String>;

    /// Returns the absolute path of a file, which must be there.
    fn file(&self, path: &str) -> Result<PathBuf, String>;

    /// Returns the index of an application in the configuration.
    fn app(&self, name: &str) -> Result<usize, String>;

    /// Returns the index of an upstream in the configuration.
    fn upstream(&self, name: &str) -> Result<usize, String>;
}

/// A place with its argument. Each event loop opens it.
pub trait OpenPlace: Send + Sync {
    /// Returns the absolute path of the file or directory that the place names.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns whether the place answers every request, if not all places of its kind do.
    fn answers_all(&self) -> bool {
        false
    }

    /// Opens the place for one event loop.
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError>;
}

/// A place in `try` of a route.
pub struct PlaceConfig {
    /// Its kind.
    pub kind: &'static PlaceKind,
    /// Its argument as it is written. Empty if it has none.
    pub argument: String,
    place: Arc<dyn OpenPlace>,
}

impl PlaceKind {
    /// Returns the form of the place for error messages, such as `files:DIR`.
    pub fn form(&self) -> String {
        match self.argument {
            Some(argument) => format!("{}:{argument}", self.name),
            None => self.name.into(),
        }
    }
}

impl PlaceConfig {
    /// Reads a place of this kind. An error is a message for the user.
    pub fn read(
        kind: &'static PlaceKind,
        argument: &str,
        named: &dyn Arguments,
    ) -> Result<Self, String> {
        let place = (kind.read)(argument, named)?;
        Ok(Self { kind, argument: argument.into(), place })
    }

    /// Returns the absolute path of the file or directory that the place names.
    pub fn path(&self) -> Option<&Path> {
        self.place.path()
    }

    /// Returns whether the place answers every request, so that no place behind it is ever asked.
    pub fn answers_all(&self) -> bool {
        self.kind.answers_all || self.place.answers_all()
    }

    /// Opens the place for one event loop.
    pub fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        self.place.open(opening)
    }
}

impl fmt::Display for PlaceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.argument {
            Some(_) => write!(f, "{}:{}", self.kind.name, self.argument),
            None => f.write_str(self.kind.name),
        }
    }
}

impl fmt::Debug for PlaceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
