//! A key that a route can switch off with `false`, because its site may have it.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A text, or `false`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextOrFalse {
    /// The text.
    Text(String),
    /// `false`.
    False,
}

impl<'de> Deserialize<'de> for TextOrFalse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrFalseVisitor)
    }
}

struct TextOrFalseVisitor;

impl Visitor<'_> for TextOrFalseVisitor {
    type Value = TextOrFalse;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or false")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<TextOrFalse, E> {
        match value {
            false => Ok(TextOrFalse::False),
            true => Err(E::invalid_value(de::Unexpected::Bool(true), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrFalse, E> {
        Ok(TextOrFalse::Text(text.to_owned()))
    }
}

impl Serialize for TextOrFalse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::False => serializer.serialize_bool(false),
        }
    }
}

/// The reference shows a text.
impl JsonSchema for TextOrFalse {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "TextOrFalse".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
