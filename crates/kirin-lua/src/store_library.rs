//! `kirin.store`: the items in memory, without a socket. The commands and their results are those
//! of memcached.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use kirin_origin::{Look, NearStore};
use kirin_store::{Direction, Invalidation, StoreMode, TAG_LIMIT_BYTES, TAGS_PER_ITEM};
use mlua::{
    AnyUserData, Error, FromLua, IntoLuaMulti, Lua, LuaString, MetaMethod, MultiValue, Result,
    Table, UserData, UserDataMethods, Value,
};

use crate::allowance::Allowance;
use crate::host::RunningCall;
use crate::store_call::{ReadForm, StoreCall, item_values};
use crate::store_command::{StoreAction, StoreCommand, Ttl};

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
    near: NearStore,
    running: RunningCall,
    time: Allowance,
    /// The first value that a function returns if the script must wait. The second is the call.
    unknown: Table,
}

/// Returns the table of functions. If there is a server behind the store, a function may return
/// `unknown` and a call that the script must wait for.
pub(crate) fn library(
    lua: &Lua,
    near: &NearStore,
    running: &RunningCall,
    time: &Allowance,
    unknown: &Table,
) -> Result<Table> {
    let access = StoreAccess {
        near: near.clone(),
        running: running.clone(),
        time: time.clone(),
        unknown: unknown.clone(),
    };
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
    add!("piece", piece);
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
    add!("delete", |access: &StoreAccess, lua: &Lua, (key, cas): (LuaString, Option<Cas>)| {
        let action = StoreAction::Delete { compare_cas: cas.map(|cas| cas.0) };
        access.carry_out(lua, access.full_name(&key)?, action)
    });
    add!("touch", |access: &StoreAccess, lua: &Lua, (key, ttl): (LuaString, TtlArgument)| {
        access.carry_out(lua, access.full_name(&key)?, StoreAction::Touch(ttl.0))
    });
    add!("invalidate_tag", |access: &StoreAccess,
                            lua: &Lua,
                            (tag, how): (LuaString, InvalidationMode)| {
        access.carry_out(lua, access.full_name(&tag)?, StoreAction::InvalidateTag(how.0))
    });
    add!(
        "invalidate_prefix",
        |access: &StoreAccess, lua: &Lua, (prefix, how): (LuaString, InvalidationMode)| {
            let full =
                access.running.namespace().full_prefix(&prefix.as_bytes()).map(Cow::into_owned);
            let full = full.ok_or_else(|| of_other_site(&prefix))?;
            access.carry_out(lua, full, StoreAction::InvalidatePrefix(how.0))
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

    /// Looks for an item. Counts its value as work.
    fn look(&self, full_name: &[u8]) -> Result<Look> {
        self.time.spend_bytes(full_name.len())?;
        let found = self.near.look(full_name, self.running.now());
        if let Look::Item(item) = &found {
            self.time.spend_bytes(item.value_slice().len())?;
        }
        Ok(found)
    }

    /// Lets the script wait for a call.
    fn wait_for(&self, lua: &Lua, call: StoreCall) -> Result<MultiValue> {
        (self.unknown.clone(), lua.create_userdata(call)?).into_lua_multi(lua)
    }

    /// Carries out a command, here or on the server behind the store.
    fn carry_out(&self, lua: &Lua, name: Vec<u8>, action: StoreAction<'_>) -> Result<MultiValue> {
        let command = StoreCommand { name: Cow::Owned(name), action };
        if self.near.origin().is_some() {
            return self.wait_for(lua, StoreCall::change(command.into_owned()));
        }
        command.run(self.near.store(), self.running.now()).into_lua(lua)
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
    ) -> Result<MultiValue> {
        self.time.spend_bytes(key.as_bytes().len())?;
        self.time.spend_bytes(value.as_bytes().len())?;
        let tags =
            options.tags.iter().map(|tag| self.full_name(tag)).collect::<Result<Vec<_>>>()?;
        let (value, StoreOptions { ttl, flags, .. }) = (value.as_bytes(), options);
        let value = Cow::Borrowed(&*value);
        let put = StoreAction::Put { mode, compare_cas, value, flags, ttl, tags };
        self.carry_out(lua, self.full_name(key)?, put)
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
    let key = access.full_name(&key)?;
    match access.look(&key)? {
        Look::Item(item) => item_values(lua, Some(&item)),
        Look::Nothing => item_values(lua, None),
        Look::Unknown => access.wait_for(lua, StoreCall::read(vec![key.into()], ReadForm::Item)),
    }
}

/// Returns the value as it is in memory, or nil if the item does not exist.
fn piece(access: &StoreAccess, lua: &Lua, key: LuaString) -> Result<MultiValue> {
    let key = access.full_name(&key)?;
    match access.look(&key)? {
        Look::Item(item) => StoredBytes(item.value()).into_lua_multi(lua),
        Look::Nothing => Value::Nil.into_lua_multi(lua),
        Look::Unknown => access.wait_for(lua, StoreCall::read(vec![key.into()], ReadForm::Piece)),
    }
}

/// Returns a table of the existing values, by key. If some must be waited for, the second value is
/// the call for those.
fn get_multi(access: &StoreAccess, lua: &Lua, keys: Table) -> Result<(Table, Option<AnyUserData>)> {
    let count = keys.raw_len();
    if count > MAX_KEYS {
        return Err(Error::runtime(format!("get_multi: {count} keys; {MAX_KEYS} are allowed")));
    }
    let found = lua.create_table_with_capacity(0, count)?;
    let (mut names, mut unknown, mut is_asked) = (Vec::new(), Vec::new(), HashSet::new());
    for index in 1..=count {
        let key: LuaString = keys.raw_get(index)?;
        access.time.step()?;
        let full = access.full_name(&key)?;
        match access.look(&full)? {
            Look::Item(item) => {
                found.raw_set(key, lua.create_string(item.value_slice())?)?;
            }
            Look::Nothing => {}
            Look::Unknown => {
                let full = Bytes::from(full);
                if is_asked.insert(full.clone()) {
                    names.push(key.as_bytes().to_vec());
                    unknown.push(full);
                }
            }
        }
    }
    if unknown.is_empty() {
        return Ok((found, None));
    }
    let form = ReadForm::Table { names, limit_bytes: access.time.limit_bytes() };
    let call = StoreCall::read(unknown, form);
    Ok((found, Some(lua.create_userdata(call)?)))
}

/// Changes a counter. Returns the new value, or nil and the reason.
fn count(
    access: &StoreAccess,
    lua: &Lua,
    direction: Direction,
    (key, delta, options): Counting,
) -> Result<MultiValue> {
    let CounterOptions { initial, ttl } = options;
    let delta = delta.unwrap_or(1);
    let count = StoreAction::Count { direction, delta, initial, ttl };
    access.carry_out(lua, access.full_name(&key)?, count)
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
struct TtlArgument(Ttl);

impl FromLua for TtlArgument {
    fn from_lua(value: Value, lua: &Lua) -> Result<Self> {
        match value {
            Value::Nil => Ok(Self(Ttl::default())),
            other => match lua.coerce_number(other)? {
                // A time shorter than a second counts as one second.
                Some(seconds) if seconds >= 0.0 => Ok(Self(Ttl(seconds.ceil() as u64))),
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
            return Ok(Self { ttl: TtlArgument::from_lua(value, lua)?.0, ..Self::default() });
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
        let TtlArgument(ttl) = table.raw_get("ttl")?;
        Ok(Self { ttl, flags: flags.unwrap_or(0), tags })
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
                let TtlArgument(ttl) = table.raw_get("ttl")?;
                Ok(Self { initial: table.raw_get("initial")?, ttl })
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
