//! The hook in which Lua's interpreter looks at the clock for a call.
//!
//! The interpreter calls it after a number of instructions. Most instructions take nanoseconds, but
//! `..` of two large strings takes milliseconds. So after slow instructions the hook is called more
//! often for a while.

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

/// Instructions between two looks while instructions are slow.
const SHORT_INTERVAL: u32 = 4;

/// Instructions are slow if the time between two looks is longer than this.
const LONG: Duration = Duration::from_millis(1);

/// The number of looks in a row without slow instructions that ends the slow phase.
const QUIET_LOOKS: u32 = 256;

/// The most stack frames between a script and the function that has failed for it.
const FRAMES: usize = 20;

/// Installs the hook in a state.
pub(crate) fn set(lua: &Lua, allowance: &Allowance) -> Result<()> {
    set_interval(lua, allowance, &Rc::new(Cell::new(0)))
}

/// Installs the hook. `looks` is the number of looks until the slow phase ends.
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

/// Adds the innermost place in a script to a message.
fn at_place(lua: &Lua, message: &str) -> String {
    let places = (0..FRAMES).map_while(|level| lua.inspect_stack(level, place_of));
    match places.into_iter().find(|place| place.contains(".lua:")) {
        Some(place) => format!("{place}: {message}"),
        None => message.to_owned(),
    }
}
