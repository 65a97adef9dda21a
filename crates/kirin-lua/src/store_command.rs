//! The commands of `kirin.store` that change the store, and their results. They are those of
//! memcached.

use std::borrow::Cow;

use bytes::Bytes;
use kirin_store::{
    ArithmeticOutcome, ArithmeticRequest, DeleteOutcome, DeleteRequest, Direction, Expires,
    Invalidation, NewItem, Now, Store, StoreMode, StoreOutcome, StoreRequest,
};
use mlua::{IntoLuaMulti, Lua, MultiValue, Result, Value};

/// The largest integer that is a number in Lua. A larger CAS is text.
const EXACT: u64 = 1 << 53;

/// A command on one item, or a purge.
#[derive(Clone, Debug)]
pub(crate) struct StoreCommand<'a> {
    /// The key, tag or prefix, as the store has it.
    pub name: Cow<'a, [u8]>,
    pub action: StoreAction<'a>,
}

#[derive(Clone, Debug)]
pub(crate) enum StoreAction<'a> {
    Put {
        mode: StoreMode,
        compare_cas: Option<u64>,
        value: Cow<'a, [u8]>,
        flags: u32,
        ttl: Ttl,
        tags: Vec<Vec<u8>>,
    },
    Count {
        direction: Direction,
        delta: u64,
        initial: Option<u64>,
        ttl: Ttl,
    },
    Delete {
        compare_cas: Option<u64>,
    },
    Touch(Ttl),
    InvalidateTag(Invalidation),
    InvalidatePrefix(Invalidation),
}

/// A time to live in seconds. 0 means that the item does not expire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ttl(pub u64);

impl Ttl {
    fn expires(self, now: Now) -> Expires {
        if self.0 == 0 { Expires::NEVER } else { Expires::after_seconds(self.0, now) }
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) enum StoreAnswer {
    Stored(StoreOutcome),
    Counted(ArithmeticOutcome),
    Done(bool),
}

impl StoreCommand<'_> {
    /// Carries out the command on a store.
    pub fn run(&self, store: &Store, now: Now) -> StoreAnswer {
        let name = &*self.name;
        match &self.action {
            StoreAction::Put { mode, compare_cas, value, flags, ttl, tags } => {
                let tags: Vec<&[u8]> = tags.iter().map(Vec::as_slice).collect();
                let item =
                    NewItem::new(&**value).flags(*flags).expires(ttl.expires(now)).tags(&tags);
                let (mode, compare_cas) = (*mode, *compare_cas);
                let request = StoreRequest { mode, compare_cas, ..StoreRequest::default() };
                StoreAnswer::Stored(store.store(name, item, &request, now))
            }
            StoreAction::Count { direction, delta, initial, ttl } => {
                let request = ArithmeticRequest {
                    direction: *direction,
                    delta: *delta,
                    vivify: initial.map(|_| ttl.expires(now)),
                    initial: initial.unwrap_or(0),
                    ..ArithmeticRequest::default()
                };
                StoreAnswer::Counted(store.arithmetic(name, &request, now))
            }
            StoreAction::Delete { compare_cas } => {
                let request =
                    DeleteRequest { compare_cas: *compare_cas, ..DeleteRequest::default() };
                let outcome = store.meta_delete(name, &request, now);
                StoreAnswer::Done(outcome == DeleteOutcome::Deleted)
            }
            StoreAction::Touch(ttl) => StoreAnswer::Done(store.touch(name, ttl.expires(now), now)),
            StoreAction::InvalidateTag(how) => StoreAnswer::Done(store.invalidate_tag(name, *how)),
            StoreAction::InvalidatePrefix(how) => {
                StoreAnswer::Done(store.invalidate_prefix(name, *how, now))
            }
        }
    }

    /// Returns the command in a form that outlives the call of the script.
    pub fn into_owned(self) -> StoreCommand<'static> {
        let owned = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
        let action = match self.action {
            StoreAction::Put { mode, compare_cas, value, flags, ttl, tags } => {
                StoreAction::Put { mode, compare_cas, value: owned(value), flags, ttl, tags }
            }
            StoreAction::Count { direction, delta, initial, ttl } => {
                StoreAction::Count { direction, delta, initial, ttl }
            }
            StoreAction::Delete { compare_cas } => StoreAction::Delete { compare_cas },
            StoreAction::Touch(ttl) => StoreAction::Touch(ttl),
            StoreAction::InvalidateTag(how) => StoreAction::InvalidateTag(how),
            StoreAction::InvalidatePrefix(how) => StoreAction::InvalidatePrefix(how),
        };
        StoreCommand { name: owned(self.name), action }
    }

    /// Returns the name as the key of an item.
    pub fn key(&self) -> Bytes {
        Bytes::copy_from_slice(&self.name)
    }

    /// Returns whether the command replaces the item, whatever is there.
    pub fn is_blind(&self) -> bool {
        matches!(&self.action, StoreAction::Put { mode: StoreMode::Set, compare_cas: None, .. })
    }

    /// Returns the values for a script if the command could not be carried out.
    pub fn failed(&self, lua: &Lua, reason: &str) -> Result<MultiValue> {
        match &self.action {
            StoreAction::Put { .. } | StoreAction::Count { .. } => {
                (Value::Nil, reason).into_lua_multi(lua)
            }
            _ => (false, reason).into_lua_multi(lua),
        }
    }
}

impl StoreAnswer {
    /// Returns the values for a script: the new CAS or number, or nil and the reason; or a boolean.
    pub fn into_lua(self, lua: &Lua) -> Result<MultiValue> {
        let refusal = match self {
            Self::Done(is_done) => return is_done.into_lua_multi(lua),
            Self::Stored(StoreOutcome::Stored { cas }) => {
                return (number(lua, cas)?, Value::Nil).into_lua_multi(lua);
            }
            Self::Counted(ArithmeticOutcome::Counted(counted)) => {
                return (number(lua, counted.value)?, Value::Nil).into_lua_multi(lua);
            }
            Self::Stored(StoreOutcome::NotStored) => "not stored",
            Self::Stored(StoreOutcome::Exists) | Self::Counted(ArithmeticOutcome::Exists) => {
                "exists"
            }
            Self::Stored(StoreOutcome::NotFound) | Self::Counted(ArithmeticOutcome::NotFound) => {
                "not found"
            }
            Self::Stored(StoreOutcome::TooLarge) => "too large",
            Self::Stored(StoreOutcome::OutOfMemory)
            | Self::Counted(ArithmeticOutcome::OutOfMemory) => "out of memory",
            Self::Counted(ArithmeticOutcome::NonNumeric) => "not a number",
        };
        (Value::Nil, refusal).into_lua_multi(lua)
    }
}

/// Returns a number, or its digits if a double is not exact.
pub(crate) fn number(lua: &Lua, number: u64) -> Result<Value> {
    if number <= EXACT {
        return Ok(Value::Number(number as f64));
    }
    Ok(Value::String(lua.create_string(itoa::Buffer::new().format(number))?))
}
