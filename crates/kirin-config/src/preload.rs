//! `preload`: whether workers are forked from a process that has loaded the application.

use kirin_workers::Preload;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// `true`, `false` or `"auto"`.
#[derive(Clone, Copy, Debug, Default)]
pub struct PreloadKey(pub Preload);

impl<'de> Deserialize<'de> for PreloadKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PreloadVisitor)
    }
}

struct PreloadVisitor;

impl Visitor<'_> for PreloadVisitor {
    type Value = PreloadKey;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("true, false or \"auto\"")
    }

    fn visit_bool<E: Error>(self, always: bool) -> Result<PreloadKey, E> {
        Ok(PreloadKey(if always { Preload::Always } else { Preload::Never }))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PreloadKey, E> {
        match text {
            "auto" => Ok(PreloadKey(Preload::Auto)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}
