//! `kirin.store`: the items in memory, without a socket. The commands and their results are those
//! of memcached.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use kirin_store::{
    ArithmeticOutcome, ArithmeticRequest, DeleteOutcome, DeleteRequest, Direction, Expires,
    Invalidation, ItemRef, NewItem, Now, Store, StoreMode, StoreOutcome, StoreRequest,
    TAG_LIMIT_BYTES, TAGS_PER_ITEM,
};
use mlua::{
    Error, FromLua, Lua, LuaString, MetaMethod, MultiValue, Result, Table, UserData,
    UserDataMethods, Value,
};

use crate::allowance::Allowance;
use crate::host::RunningCall;

/// The largest integer that is a number in Lua. A larger CAS is text.
const EXACT: u64 = 1 << 53;

/// The most keys of one `get_multi`.
const MAX_KEYS: usize = 10_000;

/// A value in the store's own memory, for the body of a response. It never becomes a Lua string.
pub(crate) struct StoredBytes(pub Bytes);

impl UserData for StoredBytes {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Len, |_, piece, ()| Ok(piece.0.len()));
        methods.add_meta_method(MetaMethod::ToString, |lua, piece, ()| lua.create_string(&piece.0));
        methods.add_method("sub", |_, piece, (first, last): (i64, Option<i64>)| {
            let length = piece.0.len() as i64;
            let at = |index: i64| if index < 0 { (length + index + 1).max(0) } else { index };
            let (first, last) = (at(first).max(1), at(last.unwrap_or(-1)).min(length));
            if first > last {
                return Ok(StoredBytes(Bytes::new()));
            }
            Ok(StoredBytes(piece.0.slice(first as usize - 1..last as usize)))
        });
    }
}

#[derive(Clone)]
struct StoreAccess {
    store: Arc<Store>,
    running: RunningCall,
    time: Allowance,
}

/// Returns the table of functions.
pub(crate) fn library(
    lua: &Lua,
    store: &Arc<Store>,
    running: &RunningCall,
    time: &Allowance,
) -> Result<Table> {
    let access =
        StoreAccess { store: Arc::clone(store), running: running.clone(), time: time.clone() };
    let library = lua.create_table()?;
    macro_rules! add {
        ($name:literal, $function:expr) => {
            let access = access.clone();
            let function = $function;
            library.set(
                $name,
                lua.create_function(move |lua, arguments| function(&access, lua, arguments))?,
            )?;
        };
    }
    add!("get", get);
    add!("piece", |access: &StoreAccess, _: &Lua, key: LuaString| Ok(access
        .item(&key)?
        .map(|item| StoredBytes(item.value()))));
    add!("get_multi", get_multi);
    add!("set", |access: &StoreAccess, lua: &Lua, (key, value, options): Storing| {
        access.put(lua, StoreMode::Set, None, &key, &value, options)
    });
    add!("add", |access: &StoreAccess, lua: &Lua, (key, value, options): Storing| {
        access.put(lua, StoreMode::Add, None, &key, &value, options)
    });
    add!("replace", |access: &StoreAccess, lua: &Lua, (key, value, options): Storing| {
        access.put(lua, StoreMode::Replace, None, &key, &value, options)
    });
    add!("append", |access: &StoreAccess, lua: &Lua, (key, value): (LuaString, LuaString)| {
        access.put(lua, StoreMode::Append, None, &key, &value, StoreOptions::default())
    });
    add!("prepend", |access: &StoreAccess, lua: &Lua, (key, value): (LuaString, LuaString)| {
        access.put(lua, StoreMode::Prepend, None, &key, &value, StoreOptions::default())
    });
    add!("cas", |access: &StoreAccess, lua: &Lua, (key, value, cas, options): Comparing| {
        access.put(lua, StoreMode::Set, Some(cas.0), &key, &value, options)
    });
    add!("incr", |access: &StoreAccess, lua: &Lua, arguments: Counting| count(
        access,
        lua,
        Direction::Up,
        arguments
    ));
    add!("decr", |access: &StoreAccess, lua: &Lua, arguments: Counting| count(
        access,
        lua,
        Direction::Down,
        arguments
    ));
    add!("delete", |access: &StoreAccess, _: &Lua, (key, cas): (LuaString, Option<Cas>)| {
        let request =
            DeleteRequest { compare_cas: cas.map(|cas| cas.0), ..DeleteRequest::default() };
        let key = access.full_name(&key)?;
        Ok(access.store.meta_delete(&key, &request, access.running.now()) == DeleteOutcome::Deleted)
    });
    add!("touch", |access: &StoreAccess, _: &Lua, (key, ttl): (LuaString, Ttl)| {
        let now = access.running.now();
        Ok(access.store.touch(&access.full_name(&key)?, ttl.expires(now), now))
    });
    add!("invalidate_tag", |access: &StoreAccess,
                            _: &Lua,
                            (tag, how): (LuaString, InvalidationMode)| {
        Ok(access.store.invalidate_tag(&access.full_name(&tag)?, how.0))
    });
    add!(
        "invalidate_prefix",
        |access: &StoreAccess, _: &Lua, (prefix, how): (LuaString, InvalidationMode)| {
            let full =
                access.running.namespace().full_prefix(&prefix.as_bytes()).map(Cow::into_owned);
            let full = full.ok_or_else(|| of_other_site(&prefix))?;
            Ok(access.store.invalidate_prefix(&full, how.0, access.running.now()))
        }
    );
    Ok(library)
}

type Storing = (LuaString, LuaString, StoreOptions);
type Comparing = (LuaString, LuaString, Cas, StoreOptions);
type Counting = (LuaString, Option<u64>, CounterOptions);

impl StoreAccess {
    /// Returns the key or tag that the store has for a name of the script.
    fn full_name(&self, name: &LuaString) -> Result<Vec<u8>> {
        let full = self.running.namespace().full_name(&name.as_bytes()).map(Cow::into_owned);
        full.ok_or_else(|| of_other_site(name))
    }

    /// Returns the item. Counts its value as work.
    fn item(&self, key: &LuaString) -> Result<Option<ItemRef>> {
        self.time.spend_bytes(key.as_bytes().len())?;
        let item = self.store.get(&self.full_name(key)?, self.running.now());
        self.time.spend_bytes(item.as_ref().map_or(0, |item| item.value_slice().len()))?;
        Ok(item)
    }

    /// Stores a value. Returns the new CAS, or nil and the reason.
    fn put(
        &self,
        lua: &Lua,
        mode: StoreMode,
        compare_cas: Option<u64>,
        key: &LuaString,
        value: &LuaString,
        options: StoreOptions,
    ) -> Result<(Value, Option<&'static str>)> {
        self.time.spend_bytes(key.as_bytes().len())?;
        self.time.spend_bytes(value.as_bytes().len())?;
        let now = self.running.now();
        let tags =
            options.tags.iter().map(|tag| self.full_name(tag)).collect::<Result<Vec<_>>>()?;
        let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
        let value = value.as_bytes();
        let item = NewItem::new(&*value)
            .flags(options.flags)
            .expires(options.ttl.expires(now))
            .tags(&tags);
        let request = StoreRequest { mode, compare_cas, ..StoreRequest::default() };
        let refusal = match self.store.store(&self.full_name(key)?, item, &request, now) {
            StoreOutcome::Stored { cas } => return Ok((number(lua, cas)?, None)),
            StoreOutcome::NotStored => "not stored",
            StoreOutcome::Exists => "exists",
            StoreOutcome::NotFound => "not found",
            StoreOutcome::TooLarge => "too large",
            StoreOutcome::OutOfMemory => "out of memory",
        };
        Ok((Value::Nil, Some(refusal)))
    }
}

fn of_other_site(name: &LuaString) -> Error {
    Error::runtime(format!(
        "`{}` names items of another site: their keys and tags begin with its name and `:`",
        name.to_string_lossy()
    ))
}

/// Returns value, CAS and flags, or nil if the item does not exist.
fn get(access: &StoreAccess, lua: &Lua, key: LuaString) -> Result<MultiValue> {
    let Some(item) = access.item(&key)? else { return Ok(MultiValue::from_iter([Value::Nil])) };
    let value = Value::String(lua.create_string(item.value_slice())?);
    Ok(MultiValue::from_iter([value, number(lua, item.cas())?, Value::Number(item.flags().into())]))
}

/// Returns a table of the existing values, by key.
fn get_multi(access: &StoreAccess, lua: &Lua, keys: Table) -> Result<Table> {
    let count = keys.raw_len();
    if count > MAX_KEYS {
        return Err(Error::runtime(format!("get_multi: {count} keys; {MAX_KEYS} are allowed")));
    }
    let found = lua.create_table_with_capacity(0, count)?;
    for index in 1..=count {
        let key: LuaString = keys.raw_get(index)?;
        access.time.step()?;
        if let Some(item) = access.item(&key)? {
            found.raw_set(key, lua.create_string(item.value_slice())?)?;
        }
    }
    Ok(found)
}

/// Changes a counter. Returns the new value, or nil and the reason.
fn count(
    access: &StoreAccess,
    lua: &Lua,
    direction: Direction,
    (key, delta, options): Counting,
) -> Result<(Value, Option<&'static str>)> {
    let now = access.running.now();
    let request = ArithmeticRequest {
        direction,
        delta: delta.unwrap_or(1),
        vivify: options.initial.map(|_| options.ttl.expires(now)),
        initial: options.initial.unwrap_or(0),
        ..ArithmeticRequest::default()
    };
    let refusal = match access.store.arithmetic(&access.full_name(&key)?, &request, now) {
        ArithmeticOutcome::Counted(counted) => return Ok((number(lua, counted.value)?, None)),
        ArithmeticOutcome::NotFound => "not found",
        ArithmeticOutcome::NonNumeric => "not a number",
        ArithmeticOutcome::Exists => "exists",
        ArithmeticOutcome::OutOfMemory => "out of memory",
    };
    Ok((Value::Nil, Some(refusal)))
}

/// Returns a number, or its digits if a double is not exact.
fn number(lua: &Lua, number: u64) -> Result<Value> {
    if number <= EXACT {
        return Ok(Value::Number(number as f64));
    }
    Ok(Value::String(lua.create_string(itoa::Buffer::new().format(number))?))
}

/// Parses a CAS that [`number`] returned.
struct Cas(u64);

impl FromLua for Cas {
    fn from_lua(value: Value, lua: &Lua) -> Result<Self> {
        let text = lua.coerce_string(value)?.ok_or_else(|| Error::runtime("a CAS is needed"))?;
        let text = text.to_str()?;
        text.parse().map(Self).map_err(|_| Error::runtime(format!("`{}` is not a CAS", &*text)))
    }
}

/// Parses a time to live in seconds. 0 and nil mean that the item does not expire.
#[derive(Clone, Copy, Default)]
struct Ttl(u64);

impl Ttl {
    fn expires(self, now: Now) -> Expires {
        if self.0 == 0 { Expires::NEVER } else { Expires::after_seconds(self.0, now) }
    }
}

impl FromLua for Ttl {
    fn from_lua(value: Value, lua: &Lua) -> Result<Self> {
        match value {
            Value::Nil => Ok(Self::default()),
            other => match lua.coerce_number(other)? {
                // A time shorter than a second counts as one second.
                Some(seconds) if seconds >= 0.0 => Ok(Self(seconds.ceil() as u64)),
                _ => Err(Error::runtime("ttl is a number of seconds, 0 or more")),
            },
        }
    }
}

/// Parses `{ ttl =, flags =, tags = }`, or a ttl alone.
#[derive(Default)]
struct StoreOptions {
    ttl: Ttl,
    flags: u32,
    tags: Vec<LuaString>,
}

impl FromLua for StoreOptions {
    fn from_lua(value: Value, lua: &Lua) -> Result<Self> {
        let Value::Table(table) = value else {
            return Ok(Self { ttl: Ttl::from_lua(value, lua)?, ..Self::default() });
        };
        let tags = match table.raw_get::<Option<Table>>("tags")? {
            // It reads one tag more than allowed, to refuse it.
            Some(tags) => tags
                .sequence_values()
                .take(TAGS_PER_ITEM + 1)
                .collect::<Result<Vec<LuaString>>>()?,
            None => Vec::new(),
        };
        let is_tag = |tag: &LuaString| (1..=TAG_LIMIT_BYTES).contains(&tag.as_bytes().len());
        if tags.len() > TAGS_PER_ITEM || !tags.iter().all(is_tag) {
            return Err(Error::runtime(format!(
                "an item has at most {TAGS_PER_ITEM} tags of 1 to {TAG_LIMIT_BYTES} bytes"
            )));
        }
        let flags: Option<u32> = table.raw_get("flags")?;
        Ok(Self { ttl: table.raw_get("ttl")?, flags: flags.unwrap_or(0), tags })
    }
}

/// Parses `{ initial =, ttl = }`: the initial value of a missing counter.
#[derive(Default)]
struct CounterOptions {
    initial: Option<u64>,
    ttl: Ttl,
}

impl FromLua for CounterOptions {
    fn from_lua(value: Value, lua: &Lua) -> Result<Self> {
        match Option::<Table>::from_lua(value, lua)? {
            None => Ok(Self::default()),
            Some(table) => {
                Ok(Self { initial: table.raw_get("initial")?, ttl: table.raw_get("ttl")? })
            }
        }
    }
}

/// Parses `"soft"` or nothing.
struct InvalidationMode(Invalidation);

impl FromLua for InvalidationMode {
    fn from_lua(value: Value, lua: &Lua) -> Result<Self> {
        match Option::<LuaString>::from_lua(value, lua)? {
            None => Ok(Self(Invalidation::Hard)),
            Some(text) if *text.as_bytes() == *b"soft" => Ok(Self(Invalidation::Soft)),
            Some(_) => Err(Error::runtime("how to invalidate is \"soft\", or nothing for at once")),
        }
    }
}
