//! Building values in Lua's memory while its limit is off.
//!
//! With a limit, mlua makes every step that may allocate a protected call, which costs several times the step itself. What is
//! small whatever a script does can be built without: the limit is looked at again by the script's next allocation.

use mlua::Lua;

/// The largest text of JSON that is read without a limit. Its tables take up to some twenty times as much.
pub(crate) const SMALL_BYTES: usize = 64 * 1024;

/// Restores the limit.
struct Limit<'a>(&'a Lua, usize);

impl Drop for Limit<'_> {
    fn drop(&mut self) {
        // It was set before, so it can be.
        let _ = self.0.set_memory_limit(self.1);
    }
}

/// Has `work`, which allocates little, done without a limit.
pub(crate) fn without_limit<R>(lua: &Lua, work: impl FnOnce() -> R) -> R {
    let _limit = lua.set_memory_limit(0).ok().map(|limit| Limit(lua, limit));
    work()
}
