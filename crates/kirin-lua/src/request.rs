//! The request as a script sees it: a table whose fields are made at their first use.

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use kirin_http::request::{BodyLength, Version};
use kirin_http::{Method, Origin, Peer, RequestHead, cookies, form};
use kirin_store::Namespace;
use mlua::{AnyUserData, Lua, LuaString, Result, Table, UserData, Value};

use crate::allowance::Allowance;
use crate::host::{Host, RunningCall, VisitorSession};
use crate::json::Json;
use crate::memory::{Builder, without_limit};
use crate::store_call::{ReadForm, StoreCall};
use crate::text_library::{decode_form, unescape_url};

/// The request of one call. It is a copy, because a script may wait and continue when the
/// connection's buffer has other bytes.
#[derive(Debug)]
pub struct Called {
    method: Method,
    version: Version,
    peer: Peer,
    secure: bool,
    has_body: bool,
    /// The part of the store that belongs to the site of the request.
    namespace: Namespace,
    /// All texts, one behind the other.
    text: Vec<u8>,
    target: Range<usize>,
    path: Range<usize>,
    query: Option<Range<usize>>,
    host: Range<usize>,
    user: Option<Range<usize>>,
    fields: Vec<(Range<usize>, Range<usize>)>,
}

impl Called {
    /// Copies the request. `path` is the path as routes see it, decoded. `user` has given a
    /// password. `namespace` is the part of the store that the script sees.
    pub fn of(
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        path: &[u8],
        user: Option<&str>,
        namespace: &Namespace,
    ) -> Self {
        let mut text = Vec::with_capacity(1024);
        let mut put = |bytes: &[u8]| {
            let start = text.len();
            text.extend_from_slice(bytes);
            start..text.len()
        };
        let target = put(request.target.as_bytes());
        let path = put(path);
        let query = request.query.map(|query| put(query.as_bytes()));
        let host = put(request.host.as_bytes());
        let user = user.map(|user| put(user.as_bytes()));
        let fields = request
            .fields
            .iter()
            .map(|field| (put(field.name.as_bytes()), put(field.value)))
            .collect();
        Self {
            method: request.method.clone(),
            version: request.version,
            peer: origin.peer.clone(),
            secure: origin.secure,
            has_body: request.body != BodyLength::None,
            namespace: namespace.clone(),
            text,
            target,
            path,
            query,
            host,
            user,
            fields,
        }
    }

    /// Returns the method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the part of the store that belongs to the site of the request.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Returns the path as routes see it, decoded.
    pub fn path(&self) -> &[u8] {
        &self.text[self.path.clone()]
    }

    /// Returns all values of the field `name`.
    pub fn field_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields
            .iter()
            .map(|(name, value)| (&self.text[name.clone()], &self.text[value.clone()]))
    }

    fn query(&self) -> Option<&[u8]> {
        self.query.clone().map(|query| &self.text[query])
    }
}

/// A handle to a request in Lua.
struct Handle(Rc<Called>);

impl UserData for Handle {}

/// The index of the handle in a request's table.
const HANDLE: usize = 0;

/// Makes request tables.
pub(crate) struct Requests {
    metatable: Table,
}

impl Requests {
    /// Creates the maker. `host` is the table that the prelude has filled.
    pub fn new(host: &Table) -> Result<Self> {
        Ok(Self { metatable: host.get("request_metatable")? })
    }

    /// Makes the table of one request.
    pub fn table(&self, lua: &Lua, called: &Rc<Called>) -> Result<Table> {
        without_limit(lua, || {
            let table = lua.create_table_with_capacity(1, 4)?;
            table.raw_set(HANDLE, lua.create_userdata(Handle(Rc::clone(called)))?)?;
            table.raw_set("path", lua.create_string(called.path())?)?;
            table.raw_set("method", called.method.as_str())?;
            table.set_metatable(Some(self.metatable.clone()))?;
            Ok(table)
        })
    }
}

/// Adds the functions that the prelude needs for requests.
pub(crate) fn add(
    lua: &Lua,
    host: &Table,
    json: &Json,
    running: &RunningCall,
    program: Rc<dyn Host>,
    time: &Allowance,
) -> Result<()> {
    host.set("methods", lua.create_table()?)?;
    let has_body = |_: &Lua, request: Table| Ok(handle(&request)?.borrow::<Handle>()?.0.has_body);
    host.set("has_body", lua.create_function(has_body)?)?;
    let allowance = time.clone();
    let form = move |lua: &Lua, text: LuaString| {
        let (form, pairs) = (lua.create_table()?, lua.create_table()?);
        parse_form(lua, &allowance, &text.as_bytes(), &form, Some(&pairs))?;
        Ok((form, pairs))
    };
    host.set("parse_form", lua.create_function(form)?)?;
    let (json, running, metatables) = (json.clone(), running.clone(), host.clone());
    let time = time.clone();
    let field = move |lua: &Lua, (request, name): (Table, LuaString)| {
        let handle = handle(&request)?;
        let handle = handle.borrow::<Handle>()?;
        let called = &*handle.0;
        let text = |range: &Range<usize>| {
            lua.create_string(&called.text[range.clone()]).map(Value::String)
        };
        match &*name.as_bytes() {
            b"target" => text(&called.target),
            b"query" => called.query.as_ref().map_or(Ok(Value::Nil), text),
            b"host" => text(&called.host),
            b"user" => called.user.as_ref().map_or(Ok(Value::Nil), text),
            b"scheme" => {
                lua.create_string(if called.secure { "https" } else { "http" }).map(Value::String)
            }
            b"version" => lua.create_string(called.version.name()).map(Value::String),
            b"remote_addr" => match &called.peer {
                Peer::Tcp(address) => {
                    lua.create_string(address.ip().to_string()).map(Value::String)
                }
                Peer::Unix => lua.create_string("unix:").map(Value::String),
            },
            b"args" => {
                let args = lua.create_table()?;
                parse_form(lua, &time, called.query().unwrap_or_default(), &args, None)?;
                Ok(Value::Table(args))
            }
            b"headers" => {
                headers(lua, &time, called, metatables.get("headers_metatable")?).map(Value::Table)
            }
            b"cookies" => cookie_table(lua, &time, called).map(Value::Table),
            b"session" => match program.session(called, running.now()) {
                VisitorSession::Nothing => Ok(Value::Nil),
                VisitorSession::Text(text) => {
                    Ok(json.decode(lua, &time, &text)?.unwrap_or(Value::Nil))
                }
                // The prelude waits for it.
                VisitorSession::Unknown(key) => lua
                    .create_userdata(StoreCall::read(vec![key], ReadForm::Session))
                    .map(Value::UserData),
            },
            _ => Ok(Value::Nil),
        }
    };
    host.set("field", lua.create_function(field)?)
}

fn handle(request: &Table) -> Result<AnyUserData> {
    request.raw_get(HANDLE)
}

/// Makes a table of fields by lower-case name. Values of one name are joined as in one line (RFC
/// 9110 section 5.3).
fn headers(lua: &Lua, time: &Allowance, called: &Called, metatable: Table) -> Result<Table> {
    let table = lua.create_table_with_capacity(0, called.fields.len())?;
    let mut joined: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    without_limit(lua, || {
        let builder = Builder { lua, time };
        for (name, value) in called.fields() {
            builder.text(value.len())?;
            let key = lua.create_string(name.to_ascii_lowercase())?;
            let before: Option<LuaString> = table.raw_get(&key)?;
            let Some(before) = before else {
                table.raw_set(key, lua.create_string(value)?)?;
                continue;
            };
            let separator: &[u8] = if *key.as_bytes() == *b"cookie" { b"; " } else { b", " };
            let joined =
                joined.entry(key.as_bytes().to_vec()).or_insert_with(|| before.as_bytes().to_vec());
            joined.extend_from_slice(separator);
            joined.extend_from_slice(value);
        }
        for (name, value) in joined {
            builder.text(value.len())?;
            table.raw_set(lua.create_string(name)?, lua.create_string(value)?)?;
        }
        table.set_metatable(Some(metatable))
    })?;
    Ok(table)
}

/// Makes a table of cookies by name, decoded. Of several the first counts, as in Plack::Request.
fn cookie_table(lua: &Lua, time: &Allowance, called: &Called) -> Result<Table> {
    let table = lua.create_table()?;
    let builder = Builder { lua, time };
    without_limit(lua, || {
        for (name, value) in called.field_values("cookie").flat_map(cookies::pairs) {
            builder.text(name.len() + value.len())?;
            let name = lua.create_string(name)?;
            if !table.contains_key(&name)? {
                let value = unescape_url(time, cookies::unquoted(value))?;
                table.raw_set(name, lua.create_string(value)?)?;
            }
        }
        Ok(table)
    })
}

/// Reads a query or urlencoded form into `form`, by name. Of several values the last counts, as in
/// Plack::Request. Writes all pairs to `pairs` in order.
fn parse_form(
    lua: &Lua,
    time: &Allowance,
    text: &[u8],
    form: &Table,
    pairs: Option<&Table>,
) -> Result<()> {
    let builder = Builder { lua, time };
    without_limit(lua, || {
        let mut count = 0;
        for pair in form::pairs_with_semicolons(text) {
            // An empty pair is work, too.
            time.step()?;
            if pair.is_empty() {
                continue;
            }
            builder.text(pair.len())?;
            let (name, value) = form::name_and_value(pair);
            let name = lua.create_string(decode_form(time, name)?)?;
            let value = lua.create_string(decode_form(time, value)?)?;
            if let Some(pairs) = pairs {
                count += 1;
                builder.value()?;
                pairs.raw_set(count, lua.create_sequence_from([&name, &value])?)?;
            }
            form.raw_set(name, value)?;
        }
        Ok(())
    })
}
