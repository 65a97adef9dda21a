//! Makes a Lua value of JSON text, directly from the parser.
//!
//! Text, numbers and booleans go from the parser into their table. mlua would need a place in
//! another stack for each value that is held in between.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::io;

use mlua::{Error as LuaError, IntoLua, Table, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::allowance::SLICE_BYTES;
use crate::json::Json;
use crate::memory::Builder;

/// The result of parsing JSON text. Objects and arrays become tables. An array is marked as one,
/// even if it is empty.
pub(crate) enum DecodedJson<'de> {
    Null,
    Boolean(bool),
    /// LuaJIT's integers have 32 bits.
    Integer(i32),
    Number(f64),
    Text(Cow<'de, str>),
    Table(Table),
}

/// Makes [`DecodedJson`] values for the parser.
#[derive(Clone, Copy)]
pub(crate) struct JsonDecoder<'a> {
    pub builder: Builder<'a>,
    pub json: &'a Json,
    /// The reason why the parser was stopped, if the text is not the reason.
    pub stopped: &'a Cell<Option<LuaError>>,
}

impl JsonDecoder<'_> {
    /// Returns the value of the parser's text, which must end behind it.
    pub fn value<'de, R: serde_json::de::Read<'de>>(
        self,
        mut parser: serde_json::Deserializer<R>,
    ) -> Result<Value, String> {
        let decoded = self.deserialize(&mut parser);
        let decoded = decoded
            .and_then(|value| parser.end().map(|()| value))
            .map_err(|error| error.to_string())?;
        match decoded.into_value(&self) {
            Ok(value) => Ok(value),
            Err(error) => {
                self.stopped.set(Some(error));
                Err(String::new())
            }
        }
    }

    fn table(&self) -> Result<Table, LuaError> {
        self.builder.value()?;
        self.builder.lua.create_table()
    }

    /// Returns the result of `work`. An error of `work` stops the parser.
    fn within<T, E: Error>(&self, work: Result<T, LuaError>) -> Result<T, E> {
        work.map_err(|error| {
            self.stopped.set(Some(error));
            E::custom("stopped")
        })
    }
}

/// A large text for the parser, in slices with a look at the clock between them.
pub(crate) struct Slices<'a> {
    pub text: &'a [u8],
    pub decoder: JsonDecoder<'a>,
}

impl io::Read for Slices<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.text.len().is_multiple_of(SLICE_BYTES)
            && let Err(error) = self.decoder.builder.time.check()
        {
            self.decoder.stopped.set(Some(error));
            return Err(io::ErrorKind::TimedOut.into());
        }
        // The parser reads single bytes. A larger read must not pass the end of a slice.
        let count = buffer.len().min(1).min(self.text.len());
        let (read, rest) = self.text.split_at(count);
        buffer[..count].copy_from_slice(read);
        self.text = rest;
        Ok(count)
    }
}

/// Makes text: the name of a member.
struct Name;

impl DecodedJson<'_> {
    /// Stores the value in the table under `key`.
    fn put(
        self,
        decoder: &JsonDecoder<'_>,
        table: &Table,
        key: impl IntoLua,
    ) -> Result<(), LuaError> {
        match &self {
            DecodedJson::Text(text) => decoder.builder.text(text.len())?,
            _ => decoder.builder.value()?,
        }
        match self {
            DecodedJson::Null => table.raw_set(key, Value::NULL),
            DecodedJson::Boolean(value) => table.raw_set(key, value),
            DecodedJson::Integer(value) => table.raw_set(key, value),
            DecodedJson::Number(value) => table.raw_set(key, value),
            DecodedJson::Text(text) => table.raw_set(key, &*text),
            DecodedJson::Table(value) => table.raw_set(key, value),
        }
    }

    /// Converts the value to a Lua value that is not put into a table.
    fn into_value(self, decoder: &JsonDecoder<'_>) -> Result<Value, LuaError> {
        Ok(match self {
            DecodedJson::Null => Value::NULL,
            DecodedJson::Boolean(value) => Value::Boolean(value),
            DecodedJson::Integer(value) => Value::Integer(value.into()),
            DecodedJson::Number(value) => Value::Number(value),
            DecodedJson::Text(text) => {
                decoder.builder.text(text.len())?;
                Value::String(decoder.builder.lua.create_string(&*text)?)
            }
            DecodedJson::Table(table) => Value::Table(table),
        })
    }
}

impl<'de> DeserializeSeed<'de> for JsonDecoder<'_> {
    type Value = DecodedJson<'de>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<DecodedJson<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonDecoder<'_> {
    type Value = DecodedJson<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<DecodedJson<'de>, E> {
        Ok(DecodedJson::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<DecodedJson<'de>, E> {
        Ok(DecodedJson::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<DecodedJson<'de>, E> {
        Ok(i32::try_from(value).map_or(DecodedJson::Number(value as f64), DecodedJson::Integer))
    }

    fn visit_u64<E>(self, value: u64) -> Result<DecodedJson<'de>, E> {
        Ok(i32::try_from(value).map_or(DecodedJson::Number(value as f64), DecodedJson::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<DecodedJson<'de>, E> {
        Ok(DecodedJson::Number(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<DecodedJson<'de>, E> {
        Ok(DecodedJson::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<DecodedJson<'de>, E> {
        Ok(DecodedJson::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<DecodedJson<'de>, A::Error> {
        let table = self.within(self.table())?;
        let mut index = 0;
        while let Some(value) = sequence.next_element_seed(self)? {
            index += 1;
            self.within(value.put(&self, &table, index))?;
        }
        self.within(self.json.mark_array(&table))?;
        Ok(DecodedJson::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DecodedJson<'de>, A::Error> {
        let table = self.within(self.table())?;
        while let Some(name) = map.next_key_seed(Name)? {
            self.within(self.builder.text(name.len()))?;
            let value = map.next_value_seed(self)?;
            self.within(value.put(&self, &table, &*name))?;
        }
        Ok(DecodedJson::Table(table))
    }
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E>(self, name: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
