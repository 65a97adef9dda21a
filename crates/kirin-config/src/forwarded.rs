//! `forwarded` of a listener: the field in which trusted proxies name the client.

use std::borrow::Cow;

use http::HeaderName;
use kirin_http::ForwardedFields;
use kirin_http::proxy_fields::is_unambiguous;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

/// The fields that are not an address alone.
const WORDS: [(&str, ForwardedFields); 2] =
    [("X-Forwarded-For", ForwardedFields::X), ("Forwarded", ForwardedFields::Forwarded)];

/// Well-known fields that never have the address of a client.
const OTHER_FIELDS: [&str; 6] =
    ["authorization", "connection", "cookie", "host", "via", "x-scheme"];

/// Names that are as like as this to a word are misspelled: 1 is the same name.
const MISSPELLED_SIMILARITY: f64 = 0.93;

/// The field, as its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardedKey(pub ForwardedFields);

impl ForwardedKey {
    /// Reads the name of the field, in any case. Returns what is wrong with it otherwise; the
    /// caller adds the key before.
    fn from_name(written: &str) -> Result<Self, String> {
        let name = written.to_ascii_lowercase();
        let word = WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(&name));
        if let Some((_, fields)) = word {
            return Ok(Self(fields.clone()));
        }
        let allowed = "\"X-Forwarded-For\", \"Forwarded\", and the name of a field that has one \
                       address, such as \"X-Real-IP\"";
        let similarity = |word: &str| strsim::jaro_winkler(&name, &word.to_ascii_lowercase());
        if let Some((word, _)) =
            WORDS.iter().find(|(word, _)| similarity(word) >= MISSPELLED_SIMILARITY)
        {
            return Err(format!("is `{written}`: did you mean `{word}`? Allowed are {allowed}"));
        }
        let is_name = is_unambiguous(&name) && HeaderName::from_bytes(name.as_bytes()).is_ok();
        if !is_name || name.starts_with("x-forwarded-") || OTHER_FIELDS.contains(&&*name) {
            return Err(format!("is `{written}`: allowed are {allowed}"));
        }
        Ok(Self(ForwardedFields::Address(written.into())))
    }

    /// Returns the name of the field.
    fn name(&self) -> &str {
        match &self.0 {
            ForwardedFields::X => WORDS[0].0,
            ForwardedFields::Forwarded => WORDS[1].0,
            ForwardedFields::Address(name) => name,
        }
    }
}

impl<'de> Deserialize<'de> for ForwardedKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        Self::from_name(&written).map_err(D::Error::custom)
    }
}

impl Serialize for ForwardedKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The reference shows a text.
impl JsonSchema for ForwardedKey {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ForwardedKey".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_read_by_its_name_and_a_misspelled_word_is_an_error() {
        let address = |name: &str| ForwardedFields::Address(name.into());
        for (written, fields) in [
            ("X-Forwarded-For", ForwardedFields::X),
            ("x-forwarded-for", ForwardedFields::X),
            ("forwarded", ForwardedFields::Forwarded),
            ("X-Real-IP", address("X-Real-IP")),
            ("CF-Connecting-IP", address("CF-Connecting-IP")),
            ("True-Client-IP", address("True-Client-IP")),
            ("Fastly-Client-IP", address("Fastly-Client-IP")),
            ("X-Client-IP", address("X-Client-IP")),
            ("X-Vercel-Forwarded-For", address("X-Vercel-Forwarded-For")),
            ("X-Original-Forwarded-For", address("X-Original-Forwarded-For")),
        ] {
            let key = ForwardedKey::from_name(written).unwrap();
            assert_eq!(key, ForwardedKey(fields), "{written}");
            assert!(key.name().eq_ignore_ascii_case(written), "{written}");
        }
        for (written, part) in [
            ("X-Forwarded", "did you mean `X-Forwarded-For`?"),
            ("X-Forwarded-From", "did you mean `X-Forwarded-For`?"),
            ("X-Forward-For", "did you mean `X-Forwarded-For`?"),
            ("Forward", "did you mean `Forwarded`?"),
            ("X-Forwarded-Proto", "is `X-Forwarded-Proto`: "),
            (
                "X_Real_IP",
                "allowed are \"X-Forwarded-For\", \"Forwarded\", and the name of a field",
            ),
            ("Host", "allowed are"),
            ("", "is ``: allowed are"),
            ("real ip", "allowed are"),
        ] {
            let error = ForwardedKey::from_name(written).expect_err(written);
            assert!(error.contains(part), "{written}: {error}");
        }
    }
}
