//! The `compress` key of a route: `true`, `false`, or the codings to use.

use kirin_compress::{Coding, Codings};
use kirin_http::FieldLines;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use crate::ssi::cacheability;

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

impl<'de> Deserialize<'de> for Compress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CompressVisitor)
    }
}

struct CompressVisitor;

impl<'de> Visitor<'de> for CompressVisitor {
    type Value = Compress;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("true, false or a list such as [\"br\", \"zstd\", \"gzip\"]")
    }

    fn visit_bool<E: Error>(self, all: bool) -> Result<Compress, E> {
        Ok(Compress::All(if all { Codings::ALL } else { Codings::NONE }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Compress, A::Error> {
        let mut codings = Codings::NONE;
        while let Some(name) = names.next_element::<String>()? {
            let coding =
                Coding::ALL.into_iter().find(|coding| coding.name() == name).ok_or_else(|| {
                    A::Error::custom(format!(
                        "`{name}` is not a coding; allowed are br, zstd and gzip"
                    ))
                })?;
            codings = codings.with(coding);
        }
        Ok(Compress::All(codings))
    }
}
