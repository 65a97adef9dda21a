//! The `compress` key of a route: `true`, `false`, or the codings to use.

use kirin_compress::{Coding, Codings};
use kirin_gateway::filters::compress_codings::Compress;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// The value of the key.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompressKey(pub Compress);

impl<'de> Deserialize<'de> for CompressKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CompressVisitor).map(Self)
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
