//! Memory of a state: its limit, and building values while that is off.
//!
//! The memory is compared with the limit at every look at the clock. LuaJIT's allocator has another
//! limit above it, which ends what a single instruction asks for. It is kept away from LuaJIT's
//! built-in functions in assembler, such as `string.sub`: they do not say where their stack ends,
//! and mlua panics when memory runs out within one. So a look comes before every long text that
//! they make, and [`HEADROOM_BYTES`] is more than they make of short ones between two looks.
//!
//! With a limit, mlua makes every step that may allocate a protected call, which costs several
//! times the step itself. So what is built of many small values is built without a limit, and
//! [`Builder`] compares the memory with the limit at every look at the clock.

use mlua::{Lua, Result};

use crate::allowance::{Allowance, SLICE_BYTES, out_of_memory};

/// Memory of a new state, which is not counted against its limit.
const OWN_BYTES: usize = 256 * 1024;

/// What the allocator gives beyond the limit, in bytes.
const HEADROOM_BYTES: usize = 8 << 20;

/// Sets the limit of a new state.
pub(crate) fn limit(lua: &Lua, time: &Allowance) -> Result<()> {
    lua.set_memory_limit(time.limit_bytes() + OWN_BYTES + HEADROOM_BYTES).map(|_| ())
}

/// Compares the memory with the limit, with so many bytes more.
pub(crate) fn check(lua: &Lua, time: &Allowance, more: usize) -> Result<()> {
    if lua.used_memory().saturating_add(more) > time.limit_bytes() + OWN_BYTES {
        return Err(out_of_memory());
    }
    Ok(())
}

/// Work of making a small table or string, in units of [`Allowance::spend`].
const VALUE_UNITS: u32 = 16;

/// Restores the limit.
struct Limit<'a>(&'a Lua, usize);

impl Drop for Limit<'_> {
    fn drop(&mut self) {
        // It was set before, so it can be.
        let _ = self.0.set_memory_limit(self.1);
    }
}

/// Has `work`, which counts its values with a [`Builder`] or makes few, done without a limit.
pub(crate) fn without_limit<R>(lua: &Lua, work: impl FnOnce() -> R) -> R {
    let _limit = lua.set_memory_limit(0).ok().map(|limit| Limit(lua, limit));
    work()
}

/// Holds values that are built without a limit to the time and the memory of the call.
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

    /// Counts a text of so many bytes before it is made.
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
