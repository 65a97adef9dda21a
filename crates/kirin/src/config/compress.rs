//! The `compress` key of a route: `true`, `false`, or the codings to use.

use kirin_compress::{Coding, Codings};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// What a route's answers may be compressed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compress {
    /// Not said: what the store and files have, which is the same for everybody, and not what an application answers, which
    /// may hold a secret beside something that a stranger has chosen (BREACH).
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

    /// The codings for what an application answers.
    pub fn of_app(self) -> Codings {
        match self {
            Compress::Shared => Codings::NONE,
            Compress::All(codings) => codings,
        }
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
            let coding = Coding::ALL.into_iter().find(|coding| coding.name() == name).ok_or_else(|| {
                A::Error::custom(format!("`{name}` is not a coding; allowed are br, zstd and gzip"))
            })?;
            codings = codings.with(coding);
        }
        Ok(Compress::All(codings))
    }
}
