//! A Lua value of JSON text, straight from the parser.
//!
//! Text, numbers and truth values go from the parser into their table: a value that is held in between costs mlua a place
//! in another stack.

use crate::json::Json;
use mlua::{Error as LuaError, IntoLua, Lua, Table, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// What is parsed of JSON text. Objects and arrays become tables; an array knows that it is one, even when empty.
pub(crate) enum Decoded<'de> {
    Null,
    Boolean(bool),
    /// LuaJIT's integers are of 32 bits.
    Integer(i32),
    Number(f64),
    Text(Cow<'de, str>),
    Table(Table),
}

/// Makes [`Decoded`] of what is parsed.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    pub lua: &'a Lua,
    pub json: &'a Json,
}

/// Makes text of what is parsed: the name of a member.
struct Name;

impl Decoded<'_> {
    /// Puts it under `key`.
    fn put(self, table: &Table, key: impl IntoLua) -> Result<(), LuaError> {
        match self {
            Decoded::Null => table.raw_set(key, Value::NULL),
            Decoded::Boolean(value) => table.raw_set(key, value),
            Decoded::Integer(value) => table.raw_set(key, value),
            Decoded::Number(value) => table.raw_set(key, value),
            Decoded::Text(text) => table.raw_set(key, &*text),
            Decoded::Table(value) => table.raw_set(key, value),
        }
    }

    /// It alone.
    pub(crate) fn into_value(self, lua: &Lua) -> Result<Value, LuaError> {
        Ok(match self {
            Decoded::Null => Value::NULL,
            Decoded::Boolean(value) => Value::Boolean(value),
            Decoded::Integer(value) => Value::Integer(value.into()),
            Decoded::Number(value) => Value::Number(value),
            Decoded::Text(text) => Value::String(lua.create_string(&*text)?),
            Decoded::Table(table) => Value::Table(table),
        })
    }
}

impl<'de> DeserializeSeed<'de> for Decoder<'_> {
    type Value = Decoded<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Decoded<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Decoder<'_> {
    type Value = Decoded<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Decoded<'de>, E> {
        Ok(Decoded::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Decoded<'de>, E> {
        Ok(Decoded::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Decoded<'de>, E> {
        Ok(i32::try_from(value).map_or(Decoded::Number(value as f64), Decoded::Integer))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Decoded<'de>, E> {
        Ok(i32::try_from(value).map_or(Decoded::Number(value as f64), Decoded::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Decoded<'de>, E> {
        Ok(Decoded::Number(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Decoded<'de>, E> {
        Ok(Decoded::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Decoded<'de>, E> {
        Ok(Decoded::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Decoded<'de>, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        let mut index = 0;
        while let Some(value) = sequence.next_element_seed(self)? {
            index += 1;
            value.put(&table, index).map_err(A::Error::custom)?;
        }
        self.json.mark_array(&table).map_err(A::Error::custom)?;
        Ok(Decoded::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Decoded<'de>, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        while let Some(name) = map.next_key_seed(Name)? {
            map.next_value_seed(self)?.put(&table, &*name).map_err(A::Error::custom)?;
        }
        Ok(Decoded::Table(table))
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
