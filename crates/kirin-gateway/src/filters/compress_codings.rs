//! The codings in which the responses of a route may be compressed.

use kirin_compress::Codings;
use kirin_http::FieldLines;

use crate::filters::ssi::cacheability;

/// What a route's answers may be compressed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compress {
    /// Not said: what the store and files have, which is the same for everybody, and not what an
    /// application answers, which may hold a secret beside something that a stranger has chosen
    /// (BREACH).
    #[default]
    Shared,
    /// What any place answers.
    All(Codings),
}

impl Compress {
    /// The codings for pages of the store and files.
    pub fn of_shared(self) -> Codings {
        match self {
            Compress::Shared => Codings::ALL,
            Compress::All(codings) => codings,
        }
    }

    /// The codings for what an application answers, and for what is put together for one visitor.
    pub fn of_app(self) -> Codings {
        match self {
            Compress::Shared => Codings::NONE,
            Compress::All(codings) => codings,
        }
    }
}

/// The codings of a place.
#[derive(Clone, Copy, Debug)]
pub struct PlaceCodings {
    /// For what is the same for everybody.
    pub shared: Codings,
    /// For a page that has been put together from what is one visitor's, which may hold a secret,
    /// too.
    pub private: Codings,
}

impl Compress {
    /// The codings for pages of the store and files, put together or not.
    pub fn of_pages(self) -> PlaceCodings {
        PlaceCodings { shared: self.of_shared(), private: self.of_app() }
    }
}

impl From<Codings> for PlaceCodings {
    fn from(codings: Codings) -> Self {
        Self { shared: codings, private: codings }
    }
}

impl PlaceCodings {
    /// The codings for a response with these fields.
    pub fn of(self, fields: &FieldLines) -> Codings {
        if cacheability::is_private(fields) { self.private } else { self.shared }
    }
}
