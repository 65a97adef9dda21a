//! `kirin.json`: `encode`, `decode`, `null` and `array`.

use std::cell::Cell;

use mlua::{Error, Lua, LuaString, Result, Table, Value};

use crate::allowance::Allowance;
use crate::json_decode::{JsonDecoder, Slices};
use crate::json_encode::JsonEncoder;
use crate::memory::{Builder, without_limit};

/// The largest text, in bytes, that is parsed without a look at the clock inside a string.
const WHOLE_BYTES: usize = 1 << 20;

/// The data that encoding and decoding share: the metatable that distinguishes an empty array from
/// an empty object.
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

    /// Refuses tables with a metatable that scripts may not change, as `setmetatable` does. These
    /// are the request and its headers.
    fn check_unprotected(&self, table: &Table) -> Result<()> {
        let is_protected = |metatable: Table| {
            metatable != self.array
                && !metatable.raw_get("__metatable").is_ok_and(|field: Value| field.is_nil())
        };
        if table.metatable().is_some_and(is_protected) {
            return Err(Error::runtime("json.array: the table is protected"));
        }
        Ok(())
    }

    pub fn mark_array(&self, table: &Table) -> Result<()> {
        table.set_metatable(Some(self.array.clone()))
    }

    /// Returns the JSON text of a value.
    pub fn encode(&self, value: &Value, time: &Allowance) -> Result<Vec<u8>> {
        let mut encoder = JsonEncoder { json: self, time, out: Vec::with_capacity(256) };
        encoder.value(value, 0)?;
        Ok(encoder.out)
    }

    /// Returns the value of a text, or an error message. The outer error ends the call, because its
    /// time is up or its memory is used up.
    pub fn decode(
        &self,
        lua: &Lua,
        time: &Allowance,
        text: &[u8],
    ) -> Result<std::result::Result<Value, String>> {
        let stopped = Cell::new(None);
        let decoder = JsonDecoder { builder: Builder { lua, time }, json: self, stopped: &stopped };
        let decoded = without_limit(lua, || {
            if text.len() <= WHOLE_BYTES {
                time.spend_bytes(text.len())?;
                let parser = serde_json::Deserializer::from_slice(text);
                return Ok(decoder.value(parser));
            }
            let parser = serde_json::Deserializer::from_reader(Slices { text, decoder });
            Ok::<_, Error>(decoder.value(parser))
        })?;
        match stopped.take() {
            Some(error) => Err(error),
            None => Ok(decoded),
        }
    }

    /// Returns the table of functions.
    pub fn library(&self, lua: &Lua, time: &Allowance) -> Result<Table> {
        let library = lua.create_table()?;
        let (json, running) = (self.clone(), time.clone());
        let encode =
            move |lua: &Lua, value: Value| lua.create_string(json.encode(&value, &running)?);
        library.set("encode", lua.create_function(encode)?)?;
        let (json, running) = (self.clone(), time.clone());
        let decode =
            move |lua: &Lua, text: LuaString| match json.decode(lua, &running, &text.as_bytes())? {
                Ok(value) => Ok((value, None)),
                Err(problem) => Ok((Value::Nil, Some(problem))),
            };
        library.set("decode", lua.create_function(decode)?)?;
        let json = self.clone();
        let array = move |lua: &Lua, table: Option<Table>| {
            let table = table.map_or_else(|| lua.create_table(), Ok)?;
            json.check_unprotected(&table)?;
            json.mark_array(&table)?;
            Ok(table)
        };
        library.set("array", lua.create_function(array)?)?;
        library.set("null", Value::NULL)?;
        Ok(library)
    }
}
