//! The look at the clock and at the memory that counted code demands (`counted_source.rs`).

use std::cell::RefCell;

use mlua::{Function, Lua, Result, Table};

use crate::allowance::{Allowance, TIME_IS_UP};
use crate::counted_source::counted;
use crate::memory;
use crate::sandbox::place_of;

/// The most tokens between two looks.
const MOST_TOKENS: usize = 2048;

/// Tokens between two looks, times the bytes of the state. A single instruction, such as a
/// comparison of two texts, may take a time in proportion to the memory. So a large state looks
/// more often.
const TOKENS_TIMES_BYTES: usize = 1 << 30;

/// The most stack frames between a script and the function that has failed for it.
const FRAMES: usize = 20;

/// The values that counted code uses.
#[derive(Clone)]
pub(crate) struct Counter {
    left: Table,
    look: Function,
}

impl Counter {
    pub fn new(lua: &Lua, allowance: &Allowance) -> Result<Self> {
        let (allowance, problem) = (allowance.clone(), RefCell::new(String::new()));
        // The end of the time is not an error of this function, because mlua would write a
        // traceback for each level of a deep stack on which the error is caught.
        let look = lua.create_function(move |lua, ()| {
            let was_up = allowance.is_up();
            if allowance.check().is_err() {
                if !was_up {
                    problem.replace(at_place(lua, TIME_IS_UP));
                }
                return Ok((None, Some(problem.borrow().clone())));
            }
            memory::check(lua, &allowance, 0)?;
            Ok((Some(MOST_TOKENS.min(TOKENS_TIMES_BYTES / lua.used_memory().max(1))), None))
        })?;
        let made = lua.load(include_str!("look.lua")).set_name("=kirin").call(look)?;
        let (left, look): (Table, Function) = made;
        Ok(Self { left, look })
    }

    /// Compiles valid source so that it counts. `environment` has its globals, if they are not
    /// those of the state.
    pub fn compile(
        &self,
        lua: &Lua,
        source: &[u8],
        name: String,
        environment: Option<Table>,
    ) -> Result<Function> {
        let chunk = lua.load(counted(source)).set_name(name);
        let chunk = match environment {
            Some(environment) => chunk.set_environment(environment),
            None => chunk,
        };
        chunk.call((&self.left, &self.look))
    }
}

/// Adds the innermost place in a script to a message.
fn at_place(lua: &Lua, message: &str) -> String {
    let places = (0..FRAMES).map_while(|level| lua.inspect_stack(level, place_of));
    match places.into_iter().find(|place| place.contains(".lua:")) {
        Some(place) => format!("{place}: {message}"),
        None => message.to_owned(),
    }
}
