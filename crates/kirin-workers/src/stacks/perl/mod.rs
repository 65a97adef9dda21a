//! The stack of a Perl interpreter.
//!
//! The greeting says where the interpreter keeps it ([`layout`]). [`walk`] reads the calls, and
//! [`names`] turns them into text.

mod layout;
mod names;
mod walk;

use std::path::Path;
use std::sync::Arc;

use super::memory::Memory;
use super::stack_error::StackError;
pub(crate) use layout::PerlLayout;
use names::FrameNames;
use walk::Walk;

/// The sub of the adapter that calls the application. Calls outside of it are the same in every
/// request.
const SERVING_SUB: &str = "Kirin::Worker::serve";

/// The stack of a Perl interpreter, and what is known of it from earlier reads.
pub(crate) struct PerlStack {
    layout: PerlLayout,
    names: FrameNames,
    walk: Walk,
}

impl PerlStack {
    pub(crate) fn new(layout: PerlLayout, directory: Option<&Path>) -> Self {
        Self { layout, names: FrameNames::new(directory), walk: Walk::default() }
    }

    /// Returns the calls of the application, the outermost first.
    pub(crate) fn calls(&mut self, memory: &impl Memory) -> Result<Vec<Arc<str>>, StackError> {
        let calls = self.walk.calls(memory, &self.layout)?;
        let mut frames = Vec::with_capacity(calls.len());
        for call in calls {
            let frame = self.names.frame(memory, &self.layout, call);
            if frame.sub_is(SERVING_SUB) {
                frames.clear();
            } else {
                frames.push(frame.text());
            }
        }
        Ok(frames)
    }
}
