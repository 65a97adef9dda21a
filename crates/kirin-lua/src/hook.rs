//! The hook by which Lua's interpreter has a call look at the clock.
//!
//! It is called every so many instructions. Most take nanoseconds, but `..` of two large strings
//! takes milliseconds. So the hook is called after fewer instructions for a while when the last
//! ones took long.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use mlua::{Error, HookTriggers, Lua, Result, VmState};

use crate::allowance::Allowance;
use crate::memory;
use crate::problem;
use crate::sandbox::place_of;

/// Instructions between two looks at the clock.
const INTERVAL: u32 = 100;

/// Instructions between two looks while instructions take long.
const SHORT_INTERVAL: u32 = 4;

/// Instructions between two looks that take longer than this take long.
const LONG: Duration = Duration::from_millis(1);

/// Looks after which instructions no longer take long, if none of them found that.
const QUIET_LOOKS: u32 = 256;

/// Frames at most between a script and what has failed for it.
const FRAMES: usize = 20;

/// Has the calls of a state look at the clock.
pub(crate) fn set(lua: &Lua, allowance: &Allowance) -> Result<()> {
    set_interval(lua, allowance, &Rc::new(Cell::new(0)))
}

/// `looks` is the number of looks until instructions no longer take long.
fn set_interval(lua: &Lua, allowance: &Allowance, looks: &Rc<Cell<u32>>) -> Result<()> {
    let interval = if looks.get() > 0 { SHORT_INTERVAL } else { INTERVAL };
    let (allowance, looks) = (allowance.clone(), Rc::clone(looks));
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(interval), move |lua, _| {
        let since = allowance
            .check()
            .map_err(|error| Error::runtime(at_place(lua, &problem::describe(&error))))?;
        memory::check(lua, &allowance, 0)?;
        let before = looks.get();
        looks.set(if since > LONG { QUIET_LOOKS } else { before.saturating_sub(1) });
        if (before == 0) != (looks.get() == 0) {
            set_interval(lua, &allowance, &looks)?;
        }
        Ok(VmState::Continue)
    })
}

/// A message behind the innermost place that is in a script.
fn at_place(lua: &Lua, message: &str) -> String {
    let places = (0..FRAMES).map_while(|level| lua.inspect_stack(level, place_of));
    match places.into_iter().find(|place| place.contains(".lua:")) {
        Some(place) => format!("{place}: {message}"),
        None => message.to_owned(),
    }
}
