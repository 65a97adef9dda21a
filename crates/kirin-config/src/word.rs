//! A key whose value is one of a few words.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

/// A type whose values have words in the configuration.
pub trait ConfigWords: Copy + PartialEq + 'static {
    /// The words and what they mean.
    const WORDS: &'static [(&'static str, Self)];
}

/// A value that is written as a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word<T>(pub T);

impl<'de, T: ConfigWords> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        let found = T::WORDS.iter().find(|(word, _)| *word == written);
        found.map(|(_, value)| Self(*value)).ok_or_else(|| {
            // The caller adds the key before the message.
            D::Error::custom(format!("is `{written}`: allowed are {}", list(T::WORDS)))
        })
    }
}

/// Lists the words as a sentence does: "a", "b" and "c".
fn list<T>(words: &[(&str, T)]) -> String {
    let mut list = String::new();
    for (index, (word, _)) in words.iter().enumerate() {
        list.push_str(match index {
            0 => "",
            _ if index + 1 == words.len() => " and ",
            _ => ", ",
        });
        list.push_str(&format!("\"{word}\""));
    }
    list
}

impl<T: ConfigWords> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let word = T::WORDS.iter().find(|(_, value)| *value == self.0).map(|(word, _)| word);
        serializer.serialize_str(word.unwrap_or(&""))
    }
}

impl<T> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
