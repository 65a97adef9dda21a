//! A JSON object a line. Values that a summary does not need are skipped and not checked.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::line::draft::{Draft, LabelMeaning, LabelledValue, LineField};
use crate::line::error::LineError;
use crate::line::record::{LogRecord, TimeUnit};

/// Parses a line.
pub(super) fn parse(line: &[u8], unit: TimeUnit) -> Result<LogRecord<'_>, LineError> {
    let mut draft = Draft::new(unit, false);
    let mut wrong = None;
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    Object { draft: &mut draft, wrong: &mut wrong }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    wrong.map_or_else(|| draft.finish(), Err)
}

/// Reads an object into a draft.
struct Object<'d, 'a> {
    draft: &'d mut Draft<'a>,
    /// The first value that is not what its label says.
    wrong: &'d mut Option<LineError>,
}

impl<'a> DeserializeSeed<'a> for Object<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for Object<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(LabelSeed)? {
            let Some(key) = key else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = if key.field == LineField::Request {
                map.next_value_seed(RequestSeed(Object { draft: self.draft, wrong: self.wrong }))?
            } else {
                map.next_value_seed(Scalar { is_bytes: key.field == LineField::Target })?
            };
            if let Some(Err(error)) = value.map(|value| self.draft.set(key, value)) {
                self.wrong.get_or_insert(error);
            }
        }
        Ok(())
    }
}

/// Reads a label.
struct LabelSeed;

impl<'a> DeserializeSeed<'a> for LabelSeed {
    type Value = Option<LabelMeaning>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for LabelSeed {
    type Value = Option<LabelMeaning>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a label")
    }

    fn visit_str<E>(self, label: &str) -> Result<Self::Value, E> {
        Ok(LabelMeaning::of(label.as_bytes()))
    }
}

/// Reads a text or a number. Other values are skipped.
struct Scalar {
    /// Whether the value is a text that may not be UTF-8.
    is_bytes: bool,
}

impl<'a> DeserializeSeed<'a> for Scalar {
    type Value = Option<LabelledValue<'a>>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.is_bytes {
            deserializer.deserialize_bytes(self)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'a> Visitor<'a> for Scalar {
    type Value = Option<LabelledValue<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a number")
    }

    fn visit_borrowed_bytes<E>(self, text: &'a [u8]) -> Result<Self::Value, E> {
        Ok(Some(LabelledValue::Text(Cow::Borrowed(text))))
    }

    fn visit_bytes<E>(self, text: &[u8]) -> Result<Self::Value, E> {
        Ok(Some(LabelledValue::Text(Cow::Owned(text.to_vec()))))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Self::Value, E> {
        self.visit_borrowed_bytes(text.as_bytes())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.visit_bytes(text.as_bytes())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(LabelledValue::Integer(number)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(LabelledValue::Float(number)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

/// Reads a request line, or an object with the parts of a request, as Caddy writes it.
struct RequestSeed<'d, 'a>(Object<'d, 'a>);

impl<'a> DeserializeSeed<'a> for RequestSeed<'_, 'a> {
    type Value = Option<LabelledValue<'a>>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for RequestSeed<'_, 'a> {
    type Value = Option<LabelledValue<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request line or an object")
    }

    fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Some(LabelledValue::Text(Cow::Borrowed(text.as_bytes()))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(LabelledValue::Text(Cow::Owned(text.as_bytes().to_vec()))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'a>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.0.visit_map(map)?;
        Ok(None)
    }
}
