//! `kirin.json`: `encode`, `decode`, `null` and `array`.

use crate::allowance::Allowance;
use crate::json_decode::Decoder;
use crate::json_encode::Encoder;
use crate::memory::{SMALL_BYTES, without_limit};
use mlua::{Lua, LuaString, Result, Table, Value};
use serde::de::DeserializeSeed;

/// What encoding and decoding share: the metatable by which an empty array is told from an empty object.
#[derive(Clone)]
pub(crate) struct Json {
    array: Table,
}

impl Json {
    pub fn new(lua: &Lua) -> Result<Self> {
        let array = lua.create_table()?;
        array.set("__metatable", "array")?;
        Ok(Self { array })
    }

    pub fn is_array(&self, table: &Table) -> bool {
        table.metatable().is_some_and(|metatable| metatable == self.array)
    }

    pub fn mark_array(&self, table: &Table) -> Result<()> {
        table.set_metatable(Some(self.array.clone()))
    }

    /// The text of a value.
    pub fn encode(&self, value: &Value, time: &Allowance) -> Result<Vec<u8>> {
        let mut encoder = Encoder { json: self, time, out: Vec::with_capacity(256) };
        encoder.value(value, 0)?;
        Ok(encoder.out)
    }

    /// The value of a text; the error says what is wrong with it.
    pub fn decode(&self, lua: &Lua, text: &[u8]) -> std::result::Result<Value, String> {
        if text.len() <= SMALL_BYTES {
            return without_limit(lua, || self.decode_any(lua, text));
        }
        self.decode_any(lua, text)
    }

    fn decode_any(&self, lua: &Lua, text: &[u8]) -> std::result::Result<Value, String> {
        let mut parser = serde_json::Deserializer::from_slice(text);
        let value = Decoder { lua, json: self }.deserialize(&mut parser);
        let value =
            value.and_then(|value| parser.end().map(|()| value)).map_err(|error| error.to_string())?;
        value.into_value(lua).map_err(|error| error.to_string())
    }

    /// The table of functions.
    pub fn library(&self, lua: &Lua, time: &Allowance) -> Result<Table> {
        let library = lua.create_table()?;
        let (json, running) = (self.clone(), time.clone());
        let encode = move |lua: &Lua, value: Value| lua.create_string(json.encode(&value, &running)?);
        library.set("encode", lua.create_function(encode)?)?;
        let json = self.clone();
        let decode = move |lua: &Lua, text: LuaString| match json.decode(lua, &text.as_bytes()) {
            Ok(value) => Ok((value, None)),
            Err(problem) => Ok((Value::Nil, Some(problem))),
        };
        library.set("decode", lua.create_function(decode)?)?;
        let json = self.clone();
        let array = move |lua: &Lua, table: Option<Table>| {
            let table = table.map_or_else(|| lua.create_table(), Ok)?;
            json.mark_array(&table)?;
            Ok(table)
        };
        library.set("array", lua.create_function(array)?)?;
        library.set("null", Value::NULL)?;
        Ok(library)
    }
}
