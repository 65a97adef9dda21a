//! A Lua value of JSON text, straight from the parser.

use crate::json::Json;
use mlua::{Lua, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Makes Lua values of what is parsed. Objects and arrays become tables; an array knows that it is one, even when empty.
#[derive(Clone, Copy)]
pub(crate) struct Decoder<'a> {
    pub lua: &'a Lua,
    pub json: &'a Json,
}

impl<'de> DeserializeSeed<'de> for Decoder<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Decoder<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::NULL)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(i32::try_from(value).map_or(Value::Number(value as f64), |value| Value::Integer(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i32::try_from(value).map_or(Value::Number(value as f64), |value| Value::Integer(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.lua.create_string(value).map(Value::String).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        let mut index = 0;
        while let Some(value) = sequence.next_element_seed(self)? {
            index += 1;
            table.raw_set(index, value).map_err(A::Error::custom)?;
        }
        self.json.mark_array(&table).map_err(A::Error::custom)?;
        Ok(Value::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let table = self.lua.create_table().map_err(A::Error::custom)?;
        while let Some(key) = map.next_key_seed(self)? {
            table.raw_set(key, map.next_value_seed(self)?).map_err(A::Error::custom)?;
        }
        Ok(Value::Table(table))
    }
}
