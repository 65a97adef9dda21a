//! The stack of a CPython interpreter: that of the thread that serves.
//!
//! The greeting says where the interpreter keeps it ([`layout`]). [`walk`] reads the calls,
//! [`lines`] finds their lines, and [`names`] turns them into text.

mod frame_spans;
mod layout;
mod lines;
mod names;
mod text;
mod walk;

use std::path::Path;
use std::sync::Arc;

use super::memory::Memory;
use super::stack_error::StackError;
pub(crate) use layout::PythonLayout;
use names::FrameNames;
use walk::Walk;

/// How often a stack is read again of which some code is gone.
const TRIES: usize = 10;

/// The stack of a CPython interpreter, and what is known of it from earlier reads.
pub(crate) struct PythonStack {
    layout: PythonLayout,
    names: FrameNames,
    walk: Walk,
}

impl PythonStack {
    pub(crate) fn new(layout: PythonLayout, directory: Option<&Path>) -> Self {
        Self { layout, names: FrameNames::new(directory), walk: Walk::default() }
    }

    /// Returns the calls of the application, the outermost first.
    pub(crate) fn calls(&mut self, memory: &impl Memory) -> Result<Vec<Arc<str>>, StackError> {
        for _ in 0..TRIES {
            let calls = self.walk.calls(memory, &self.layout)?;
            let frames = calls.into_iter().map(|call| self.names.frame(memory, &self.layout, call));
            if let Some(frames) = frames.collect() {
                return Ok(frames);
            }
        }
        Err(StackError::Unstable)
    }
}

#[cfg(test)]
mod fake_memory;

#[cfg(test)]
#[path = "random_tests.rs"]
mod random_tests;
