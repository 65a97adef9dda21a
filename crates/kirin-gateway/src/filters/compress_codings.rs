//! The codings in which the responses of a route may be compressed.

use kirin_compress::Codings;
use kirin_http::FieldLines;

use crate::filters::ssi::cacheability;

/// The codings of a route, by who makes a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compress {
    /// Not configured. Pages of the store and files are coded: they are the same for all clients.
    /// Responses of code are not, because they may contain a secret and text that an attacker has
    /// chosen (BREACH).
    #[default]
    Shared,
    /// The responses of all places.
    All(Codings),
}

impl Compress {
    /// Returns the codings for pages of the store and files.
    pub fn for_shared(self) -> Codings {
        match self {
            Compress::Shared => Codings::ALL,
            Compress::All(codings) => codings,
        }
    }

    /// Returns the codings for responses of code, and for pages that are assembled for one visitor.
    pub fn for_code(self) -> Codings {
        match self {
            Compress::Shared => Codings::NONE,
            Compress::All(codings) => codings,
        }
    }
}

/// The codings of a place.
#[derive(Clone, Copy, Debug)]
pub struct PlaceCodings {
    /// The codings for responses that are the same for all clients.
    pub shared: Codings,
    /// The codings for pages that are assembled for one visitor, which may hold a secret.
    pub private: Codings,
}

impl Compress {
    /// Returns the codings for pages of the store and files, assembled or not.
    pub fn for_pages(self) -> PlaceCodings {
        PlaceCodings { shared: self.for_shared(), private: self.for_code() }
    }
}

impl From<Codings> for PlaceCodings {
    fn from(codings: Codings) -> Self {
        Self { shared: codings, private: codings }
    }
}

impl PlaceCodings {
    /// Returns the codings for a response with these fields.
    pub fn for_response(self, fields: &FieldLines) -> Codings {
        if cacheability::is_private(fields) { self.private } else { self.shared }
    }
}
