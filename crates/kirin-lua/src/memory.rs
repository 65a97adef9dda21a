//! The memory of a state: its limit, and values that are built while the limit is off.
//!
//! The memory is compared with the limit at every look at the clock. LuaJIT's allocator has another
//! limit above it, for the memory of a single instruction. LuaJIT's built-in functions in
//! assembler, such as `string.sub`, must not reach the allocator's limit. They do not record where
//! their stack ends, and mlua panics if memory runs out in one of them. So a look comes before
//! every long text that they make. [`HEADROOM_BYTES`] is more than they make of short texts between
//! two looks.
//!
//! With a limit, mlua makes every step that may allocate a protected call. That costs several times
//! the step itself. So values with many small parts are built without a limit. [`Builder`] compares
//! the memory with the limit at every look at the clock.

use mlua::{Lua, Result};

use crate::allowance::{Allowance, SLICE_BYTES, out_of_memory};

/// Memory of a new state in bytes. It does not count towards the limit.
const OWN_BYTES: usize = 256 * 1024;

/// The memory that the allocator gives beyond the limit, in bytes.
const HEADROOM_BYTES: usize = 8 << 20;

/// Sets the limit of a new state.
pub(crate) fn limit(lua: &Lua, time: &Allowance) -> Result<()> {
    lua.set_memory_limit(time.limit_bytes() + OWN_BYTES + HEADROOM_BYTES).map(|_| ())
}

/// Compares the memory with the limit, with `more` bytes added.
pub(crate) fn check(lua: &Lua, time: &Allowance, more: usize) -> Result<()> {
    if lua.used_memory().saturating_add(more) > time.limit_bytes() + OWN_BYTES {
        return Err(out_of_memory());
    }
    Ok(())
}

/// The work of making a small table or string, in units of [`Allowance::spend`].
const VALUE_UNITS: u32 = 16;

/// Restores the limit when it is dropped.
struct Limit<'a>(&'a Lua, usize);

impl Drop for Limit<'_> {
    fn drop(&mut self) {
        // The limit was set before, so setting it cannot fail.
        let _ = self.0.set_memory_limit(self.1);
    }
}

/// Calls `work` without a limit. `work` counts its values with a [`Builder`], or makes only a few.
pub(crate) fn without_limit<R>(lua: &Lua, work: impl FnOnce() -> R) -> R {
    let _limit = lua.set_memory_limit(0).ok().map(|limit| Limit(lua, limit));
    work()
}

/// Applies the time and memory limits of the call to values that are built without a limit.
#[derive(Clone, Copy)]
pub(crate) struct Builder<'a> {
    pub lua: &'a Lua,
    pub time: &'a Allowance,
}

impl Builder<'_> {
    /// Counts a value before it is made.
    pub fn value(&self) -> Result<()> {
        if self.time.spend(VALUE_UNITS)? { self.check_memory(0) } else { Ok(()) }
    }

    /// Counts a text of `bytes` bytes before it is made.
    pub fn text(&self, bytes: usize) -> Result<()> {
        self.value()?;
        if bytes < SLICE_BYTES {
            return self.time.spend_bytes(bytes).map(|_| ());
        }
        self.time.check()?;
        self.check_memory(bytes)
    }

    fn check_memory(&self, more: usize) -> Result<()> {
        check(self.lua, self.time, more)
    }
}
