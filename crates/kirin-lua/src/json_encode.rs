//! Makes JSON text of a Lua value. It is strict: a value that JSON does not have is an error.

use mlua::{Error, LuaString, Result, Table, Value};

use crate::allowance::{Allowance, SLICE_BYTES};
use crate::json::Json;

/// The deepest nesting. [`serde_json`] has the same limit for reading. A table that contains itself
/// ends here.
const DEEPEST: usize = 128;

/// The largest integer that a double holds exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

pub(crate) struct JsonEncoder<'a> {
    pub json: &'a Json,
    pub time: &'a Allowance,
    pub out: Vec<u8>,
}

impl JsonEncoder<'_> {
    pub fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        self.time.step()?;
        match value {
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(data) if data.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Integer(integer) => {
                self.out.extend_from_slice(itoa::Buffer::new().format(*integer).as_bytes());
            }
            Value::Number(number) => self.number(*number)?,
            Value::String(text) => self.string(text)?,
            Value::Table(table) => return self.table(table, depth),
            other => return Err(Error::runtime(format!("JSON has no {}", other.type_name()))),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> Result<()> {
        if !number.is_finite() {
            return Err(Error::runtime("JSON has no infinite numbers and no NaN"));
        }
        if number.fract() == 0.0 && number.abs() < EXACT {
            self.out.extend_from_slice(itoa::Buffer::new().format(number as i64).as_bytes());
            return Ok(());
        }
        serde_json::to_writer(&mut self.out, &number).map_err(Error::external)
    }

    fn string(&mut self, text: &LuaString) -> Result<()> {
        let bytes = text.as_bytes();
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            Error::runtime(format!("JSON is UTF-8, and a string is not: {error}"))
        })?;
        if text.len() <= SLICE_BYTES {
            return self.quoted(text);
        }
        let (mut rest, opened) = (text, self.out.len());
        self.out.push(b'"');
        while !rest.is_empty() {
            let end = rest.floor_char_boundary(SLICE_BYTES);
            // `</` must not be split between slices.
            let end = if rest[..end].ends_with('<') && end < rest.len() { end - 1 } else { end };
            // The slices are one string, without the quote at the end of one slice and at the start
            // of the next.
            self.out.pop();
            let start = self.out.len();
            self.quoted(&rest[..end])?;
            if start > opened {
                self.out.remove(start);
            }
            rest = &rest[end..];
        }
        Ok(())
    }

    /// Writes a JSON string.
    fn quoted(&mut self, text: &str) -> Result<()> {
        self.time.spend_bytes(text.len())?;
        self.time.size(self.out.len() + text.len())?;
        // `</script>` would end a script element of a page.
        let start = self.out.len();
        serde_json::to_writer(&mut self.out, text).map_err(Error::external)?;
        if memchr::memmem::find(&self.out[start..], b"</").is_some() {
            let written = self.out.split_off(start);
            let mut rest = written.as_slice();
            while let Some(at) = memchr::memmem::find(rest, b"</") {
                self.out.extend_from_slice(&rest[..at]);
                self.out.extend_from_slice(b"<\\/");
                rest = &rest[at + 2..];
            }
            self.out.extend_from_slice(rest);
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<()> {
        if depth >= DEEPEST {
            return Err(Error::runtime("the value nests too deep for JSON, or holds itself"));
        }
        let length = table.raw_len();
        let is_array = length > 0 || self.json.is_array(table);
        self.out.push(if is_array { b'[' } else { b'{' });
        let mut written = 0;
        if is_array {
            for index in 1..=length {
                if written > 0 {
                    self.out.push(b',');
                }
                self.value(&table.raw_get(index)?, depth + 1)?;
                written += 1;
            }
        }
        table.for_each::<Value, Value>(|key, value| {
            self.time.step()?;
            if is_array {
                let index = key.as_integer().and_then(|index| usize::try_from(index).ok());
                if index.is_some_and(|index| (1..=length).contains(&index)) {
                    return Ok(());
                }
                return Err(Error::runtime(
                    "a table is an array or an object of JSON, not both; arrays have no holes",
                ));
            }
            if written > 0 {
                self.out.push(b',');
            }
            written += 1;
            match &key {
                Value::String(key) => self.string(key)?,
                other => {
                    return Err(Error::runtime(format!(
                        "keys of JSON objects are strings, not {}",
                        other.type_name()
                    )));
                }
            }
            self.out.push(b':');
            self.value(&value, depth + 1)
        })?;
        self.out.push(if is_array { b']' } else { b'}' });
        self.time.size(self.out.len())
    }
}
