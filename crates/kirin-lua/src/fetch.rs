//! Subrequests: requests of a script to other routes of the site, and their responses. The program
//! sends them. The script waits in this time, but the event loop does not.

use bytes::Bytes;
use kirin_http::{FieldLines, Method, StatusCode};
use mlua::{Error, IntoLua, Lua, LuaString, Result, Table, UserData, Value};

use crate::allowance::Allowance;

/// The most subrequests that one script sends at the same time.
pub(crate) const MAX_AT_ONCE: usize = 64;

/// The longest target of a subrequest, in bytes.
const MAX_TARGET_BYTES: usize = 64 * 1024;

/// The longest fields of a subrequest together, in bytes.
const MAX_FIELD_BYTES: usize = 64 * 1024;

/// A request of a script.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// The method.
    pub method: Method,
    /// Path and query, as in a request line.
    pub target: String,
    /// The fields that the script sets. The visitor's fields are added to them.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The body.
    pub body: Bytes,
}

/// The response to a subrequest.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The status.
    pub status: StatusCode,
    /// The fields.
    pub fields: FieldLines,
    /// The complete body.
    pub body: Bytes,
}

impl UserData for Fetch {}

/// Adds the functions that the prelude needs for subrequests.
pub(crate) fn add(lua: &Lua, host: &Table, allowance: &Allowance) -> Result<()> {
    let time = allowance.clone();
    // The bytes of the body are copied. So the prelude adds up the bodies of the same call.
    let request_of = move |lua: &Lua, (target, options, before): (Value, Option<Table>, usize)| {
        let fetch = Fetch::of(&time, target, options, before)?;
        let length = before + fetch.body.len();
        Ok((lua.create_userdata(fetch)?, length))
    };
    host.set("request_of", lua.create_function(request_of)?)?;
    host.set("most_fetches", MAX_AT_ONCE)
}

impl Fetch {
    /// Reads a subrequest. `before` is the length of the other bodies of the same call, in bytes.
    fn of(time: &Allowance, target: Value, options: Option<Table>, before: usize) -> Result<Self> {
        let Value::String(target) = target else {
            return Err(Error::runtime(
                "fetch: the first argument is a path, such as \"/page?a=b\"",
            ));
        };
        if target.as_bytes().len() > MAX_TARGET_BYTES {
            return Err(Error::runtime(format!(
                "fetch: a path has at most {MAX_TARGET_BYTES} bytes"
            )));
        }
        let target = target.to_str()?.to_owned();
        if !target.starts_with('/') || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::runtime(format!(
                "fetch: `{}` is not a path of this site: it begins with / and is percent-encoded",
                target.escape_debug()
            )));
        }
        let mut fetch =
            Self { method: Method::GET, target, fields: Vec::new(), body: Bytes::new() };
        let Some(options) = options else { return Ok(fetch) };
        if let Some(body) = options.raw_get::<Option<LuaString>>("body")? {
            time.spend_bytes(body.as_bytes().len())?;
            time.size(before + body.as_bytes().len())?;
            fetch.body = Bytes::copy_from_slice(&body.as_bytes());
            fetch.method = Method::POST;
        }
        if let Some(method) = options.raw_get::<Option<LuaString>>("method")? {
            fetch.method = Method::from_bytes(&method.as_bytes())
                .ok()
                .filter(|method| !matches!(*method, Method::CONNECT | Method::TRACE))
                .ok_or_else(|| {
                    Error::runtime(format!("fetch: {} is not a method", method.display()))
                })?;
        }
        if let Some(headers) = options.raw_get::<Option<Table>>("headers")? {
            let mut length = 0;
            headers.for_each::<LuaString, LuaString>(|name, value| {
                length += name.as_bytes().len() + value.as_bytes().len();
                if length > MAX_FIELD_BYTES {
                    return Err(Error::runtime(format!(
                        "fetch: the headers have at most {MAX_FIELD_BYTES} bytes"
                    )));
                }
                // The rules are those of a response.
                FieldLines::new()
                    .try_push(&name.as_bytes(), &value.as_bytes())
                    .map_err(Error::external)?;
                fetch.fields.push((name.to_str()?.to_ascii_lowercase(), value.as_bytes().to_vec()));
                Ok(())
            })?;
        }
        Ok(fetch)
    }
}

impl IntoLua for Fetched {
    /// Makes a table that a script could return as a response.
    fn into_lua(self, lua: &Lua) -> Result<Value> {
        let (table, headers) = (lua.create_table()?, lua.create_table()?);
        for (name, value) in self.fields.iter() {
            let name = lua.create_string(name.to_ascii_lowercase())?;
            let value = lua.create_string(value)?;
            match headers.raw_get(&name)? {
                Value::Nil => headers.raw_set(name, value)?,
                Value::Table(list) => list.raw_push(value)?,
                first => headers
                    .raw_set(name, lua.create_sequence_from([first, Value::String(value)])?)?,
            }
        }
        table.raw_set("status", self.status.as_u16())?;
        table.raw_set("headers", headers)?;
        table.raw_set("body", lua.create_string(&self.body)?)?;
        Ok(Value::Table(table))
    }
}
