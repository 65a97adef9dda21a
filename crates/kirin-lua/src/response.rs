//! The return value of a script's function as a response.

use bytes::Bytes;
use kirin_http::{Body, FieldLines, Response, StatusCode};
use mlua::{Error, LuaString, Result, Table, Value};

use crate::allowance::Allowance;
use crate::problem;
use crate::store_library::StoredBytes;

/// Larger pieces from the store are sent without a copy. Smaller ones are copied one behind the
/// other.
const WHOLE_BYTES: usize = 4096;

/// Memory of a piece of the store in a list, in bytes.
const PIECE_BYTES: usize = 64;

/// Work of a header field line, in units of [`Allowance::spend`].
const LINE_UNITS: u32 = 16;

/// The longest header fields of a response together, in bytes.
const MAX_FIELD_BYTES: usize = 256 * 1024;

/// Fields that the connection writes itself.
const FRAMING: [&str; 4] = ["content-length", "transfer-encoding", "connection", "keep-alive"];

/// Returns the response that `value` describes, or `None` if it is nil.
pub(crate) fn response(value: &Value, allowance: &Allowance) -> Result<Option<Response>> {
    let table = match value {
        Value::Nil => return Ok(None),
        Value::Table(table) => table,
        body => {
            let mut response =
                Response::new(crate::ANSWERED_BY, StatusCode::OK, whole(body, allowance)?);
            response.fields.push("Content-Type", HTML);
            return Ok(Some(response));
        }
    };
    let status: Option<u16> = table.raw_get("status")?;
    let status = StatusCode::from_u16(status.unwrap_or(200))
        .ok()
        .filter(|status| (200..=599).contains(&status.as_u16()));
    let status = status
        .ok_or_else(|| Error::runtime("`status` of a response is a number from 200 to 599"))?;
    let body = whole(&table.raw_get("body")?, allowance)?;
    let mut response = Response::new(crate::ANSWERED_BY, status, body);
    if let Some(headers) = table.raw_get::<Option<Table>>("headers")? {
        let mut lines = FieldsBuilder { fields: &mut response.fields, allowance, length: 0 };
        headers.for_each::<LuaString, Value>(|name, value| match value {
            Value::Table(values) => values
                .sequence_values::<LuaString>()
                .try_for_each(|value| lines.push(&name.as_bytes(), &value?.as_bytes())),
            value => match value {
                Value::String(value) => lines.push(&name.as_bytes(), &value.as_bytes()),
                Value::Integer(_) | Value::Number(_) => {
                    lines.push(&name.as_bytes(), value.to_string()?.as_bytes())
                }
                other => Err(Error::runtime(format!(
                    "header {} is a {}: allowed are strings, numbers and lists of strings",
                    shown(&name.as_bytes()),
                    other.type_name()
                ))),
            },
        })?;
    }
    let needs_type = !matches!(response.body, Body::Empty) && !Response::is_bodiless_status(status);
    if needs_type && response.fields.get("content-type").is_none() {
        response.fields.push("Content-Type", HTML);
    }
    Ok(Some(response))
}

const HTML: &str = "text/html; charset=utf-8";

/// The header of a response while it is built.
struct FieldsBuilder<'a> {
    fields: &'a mut FieldLines,
    allowance: &'a Allowance,
    length: usize,
}

impl FieldsBuilder<'_> {
    fn push(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        self.allowance.spend(LINE_UNITS)?;
        self.length += name.len() + value.len();
        if self.length > MAX_FIELD_BYTES {
            return Err(Error::runtime(format!(
                "the headers of a response have at most {MAX_FIELD_BYTES} bytes"
            )));
        }
        if FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing.as_bytes())) {
            return Err(Error::runtime(format!(
                "header {} is written by Kirin itself",
                shown(name)
            )));
        }
        self.fields.try_push(name, value).map_err(Error::external)
    }
}

/// Formats a name in a message.
fn shown(name: &[u8]) -> String {
    problem::loggable(name)
}

/// Converts a value to a body: nothing, text, a piece of the store, or a list of them.
fn whole(value: &Value, allowance: &Allowance) -> Result<Body> {
    let mut body = Pieces { allowance, done: Vec::new(), open: Vec::new(), length: 0 };
    match value {
        Value::Nil | Value::Boolean(false) => return Ok(Body::Empty),
        Value::String(text) => return Ok(Body::Bytes(Bytes::copy_from_slice(&text.as_bytes()))),
        Value::Table(list) => {
            for index in 1..=list.raw_len() {
                body.add(&list.raw_get(index)?)?;
            }
        }
        other => body.add(other)?,
    }
    Ok(body.finish())
}

struct Pieces<'a> {
    allowance: &'a Allowance,
    done: Vec<Bytes>,
    open: Vec<u8>,
    length: usize,
}

impl Pieces<'_> {
    fn add(&mut self, value: &Value) -> Result<()> {
        self.allowance.step()?;
        match value {
            Value::String(text) => self.copy(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => self.copy(value.to_string()?.as_bytes()),
            Value::UserData(data) if data.is::<StoredBytes>() => {
                let piece = data.borrow::<StoredBytes>()?;
                if piece.0.len() < WHOLE_BYTES {
                    return self.copy(&piece.0);
                }
                if !self.open.is_empty() {
                    self.done.push(std::mem::take(&mut self.open).into());
                }
                self.done.push(piece.0.clone());
                self.length += PIECE_BYTES;
                self.allowance.size(self.length)
            }
            other => Err(Error::runtime(format!(
                "a body is text, a piece of the store or a list of them, not a {}",
                other.type_name()
            ))),
        }
    }

    /// Appends copied bytes, which are memory of the response. Pieces belong to the store.
    fn copy(&mut self, bytes: &[u8]) -> Result<()> {
        self.allowance.spend_bytes(bytes.len())?;
        self.length += bytes.len();
        self.allowance.size(self.length)?;
        self.open.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(mut self) -> Body {
        if !self.open.is_empty() {
            self.done.push(self.open.into());
        }
        match self.done.len() {
            0 => Body::Empty,
            1 => self.done.pop().map_or(Body::Empty, Body::Bytes),
            _ => Body::Segments(self.done),
        }
    }
}
