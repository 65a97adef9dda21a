//! A call of `kirin.store` that needs the server behind the store. The script waits for it.

use bytes::Bytes;
use kirin_origin::{NearStore, NotLoaded, OriginError, Purge, Scratch};
use kirin_store::{ItemRef, KEY_LIMIT_BYTES, Now, TAG_LIMIT_BYTES};
use mlua::{IntoLua, IntoLuaMulti, Lua, MultiValue, Result, UserData, Value};

use crate::allowance::{Allowance, out_of_memory};
use crate::host::Host;
use crate::store_command::{StoreAction, StoreAnswer, StoreCommand, number};
use crate::store_library::StoredBytes;

/// A call that needs the server.
#[derive(Clone, Debug)]
pub struct StoreCall(CallKind);

#[derive(Clone, Debug)]
enum CallKind {
    /// Reads the items of these keys.
    Read { keys: Vec<Bytes>, form: ReadForm },
    /// Changes what is on the server.
    Change(StoreCommand<'static>),
}

/// What a script gets for the items that it reads.
#[derive(Clone, Debug)]
pub(crate) enum ReadForm {
    /// Value, CAS and flags.
    Item,
    /// The value, which never becomes a Lua string.
    Piece,
    /// The text of the visitor's session.
    Session,
    /// A table of the values, by the names of the script. They may have this many bytes together.
    Table { names: Vec<Vec<u8>>, limit_bytes: usize },
}

/// What the server has said.
#[derive(Debug)]
pub struct StoreReply(ReplyKind);

#[derive(Debug)]
enum ReplyKind {
    Read {
        items: Vec<Option<ItemRef>>,
        form: ReadForm,
    },
    /// The items are larger than the script's memory.
    TooLarge,
    Changed(StoreCommand<'static>, std::result::Result<StoreAnswer, OriginError>),
}

impl UserData for StoreCall {}

impl StoreCall {
    pub(crate) fn read(keys: Vec<Bytes>, form: ReadForm) -> Self {
        Self(CallKind::Read { keys, form })
    }

    pub(crate) fn change(command: StoreCommand<'static>) -> Self {
        Self(CallKind::Change(command))
    }

    /// Carries out the call on the server behind `near`. `scratch` is that of the event loop.
    pub async fn carry_out(self, near: &NearStore, scratch: &Scratch) -> StoreReply {
        StoreReply(match self.0 {
            CallKind::Read { keys, form } => {
                let limit_bytes = match form {
                    ReadForm::Table { limit_bytes, .. } => limit_bytes,
                    ReadForm::Item | ReadForm::Piece | ReadForm::Session => usize::MAX,
                };
                match near.load_within(&keys, limit_bytes).await {
                    Ok(items) => ReplyKind::Read { items, form },
                    Err(NotLoaded::TooLarge) => ReplyKind::TooLarge,
                    Err(NotLoaded::NoAnswer) => {
                        ReplyKind::Read { items: vec![None; keys.len()], form }
                    }
                }
            }
            CallKind::Change(command) => {
                let answer = change(&command, near, scratch).await;
                ReplyKind::Changed(command, answer)
            }
        })
    }
}

async fn change(
    command: &StoreCommand<'_>,
    near: &NearStore,
    scratch: &Scratch,
) -> std::result::Result<StoreAnswer, OriginError> {
    let run = || command.run(scratch.store(), Now::on_steady_clock());
    // The server gets no names that the store refuses.
    let limit_bytes = match command.action {
        StoreAction::InvalidateTag(_) | StoreAction::InvalidatePrefix(_) => TAG_LIMIT_BYTES,
        _ => KEY_LIMIT_BYTES,
    };
    if command.name.len() > limit_bytes {
        return Ok(run());
    }
    let names = [&*command.name];
    let (how, purge) = match command.action {
        StoreAction::InvalidateTag(how) => (how, Purge { tags: &names, ..Purge::default() }),
        StoreAction::InvalidatePrefix(how) => (how, Purge { prefixes: &names, ..Purge::default() }),
        _ => {
            let key = command.key();
            return match command.action {
                StoreAction::Delete { .. } => scratch.remove(&key, run).await,
                _ if command.is_blind() => scratch.replace(&key, run).await,
                _ => scratch.change(&key, run).await,
            };
        }
    };
    let Some(origin) = near.origin() else { return Ok(StoreAnswer::Done(false)) };
    let found = origin.purge(&purge, how, Now::on_steady_clock()).await?;
    Ok(StoreAnswer::Done(purge.tags.is_empty() || found.tags > 0))
}

impl StoreReply {
    /// Returns the values for the script. Values of items count as work.
    pub(crate) fn into_lua(
        self,
        lua: &Lua,
        program: &dyn Host,
        time: &Allowance,
        now: Now,
    ) -> Result<MultiValue> {
        let (items, form) = match self.0 {
            ReplyKind::Changed(_, Ok(answer)) => return answer.into_lua(lua),
            ReplyKind::Changed(command, Err(error)) => {
                return command.failed(lua, &error.to_string());
            }
            ReplyKind::TooLarge => return Err(out_of_memory()),
            ReplyKind::Read { items, form } => (items, form),
        };
        for item in items.iter().flatten() {
            time.spend_bytes(item.value_slice().len())?;
        }
        let only = || items.first().cloned().flatten();
        match form {
            ReadForm::Item => item_values(lua, only().as_ref()),
            ReadForm::Piece => only().map(|item| StoredBytes(item.value())).into_lua_multi(lua),
            ReadForm::Session => {
                let text = only().and_then(|item| program.session_text(&item, now));
                text.map(|text| lua.create_string(&text)).transpose()?.into_lua_multi(lua)
            }
            ReadForm::Table { names, .. } => {
                let found = lua.create_table_with_capacity(0, items.len())?;
                for (name, item) in names.iter().zip(&items) {
                    if let Some(item) = item {
                        found.raw_set(
                            lua.create_string(name)?,
                            lua.create_string(item.value_slice())?,
                        )?;
                    }
                }
                found.into_lua(lua)?.into_lua_multi(lua)
            }
        }
    }
}

/// Returns value, CAS and flags of an item, or nil if there is none.
pub(crate) fn item_values(lua: &Lua, item: Option<&ItemRef>) -> Result<MultiValue> {
    let Some(item) = item else { return Value::Nil.into_lua_multi(lua) };
    let value = lua.create_string(item.value_slice())?;
    (value, number(lua, item.cas())?, item.flags()).into_lua_multi(lua)
}
