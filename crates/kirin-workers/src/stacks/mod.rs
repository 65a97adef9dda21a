//! The stack of a worker, read from outside while the worker runs.
//!
//! The worker does not notice: it gets no signal, so no call in which the application waits ends
//! early, and it does no work for this. Its greeting says where the interpreter keeps the stack
//! ([`StackLayout`]). The kernel gives Kirin the memory of its own workers ([`memory`]). Each
//! language has a module that reads the calls and turns them into text.

mod call_text;
mod layout_word;
mod memory;
mod perl;
mod python;
mod stack_error;

use std::path::Path;
use std::sync::Arc;

use memory::ProcessMemory;
use perl::{PerlLayout, PerlStack};
use python::{PythonLayout, PythonStack};
pub use stack_error::StackError;

/// Where a worker keeps its stack: the word `stacks=…` of its greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StackLayout {
    Perl(PerlLayout),
    Python(PythonLayout),
}

impl StackLayout {
    /// Parses the value of the word. Returns none for another language and for wrong numbers.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        let perl = PerlLayout::parse(value).map(Self::Perl);
        perl.or_else(|| PythonLayout::parse(value).map(Self::Python))
    }
}

/// Reads the stacks of one worker.
pub(crate) struct StackReader {
    memory: ProcessMemory,
    stack: Stack,
}

/// The stack of an interpreter, and what is known of it from earlier reads.
enum Stack {
    Perl(PerlStack),
    Python(PythonStack),
}

impl StackReader {
    /// Opens the memory of a worker. File names are shortened if they are below `directory`.
    pub(crate) fn open(
        pid: u32,
        layout: Option<&Arc<StackLayout>>,
        directory: Option<&Path>,
    ) -> Result<Self, StackError> {
        let stack = match &**layout.ok_or(StackError::NoLayout)? {
            StackLayout::Perl(layout) => Stack::Perl(PerlStack::new(layout.clone(), directory)),
            StackLayout::Python(layout) => {
                Stack::Python(PythonStack::new(layout.clone(), directory))
            }
        };
        Ok(Self { memory: ProcessMemory::open(pid)?, stack })
    }

    /// Returns the calls of the application, the outermost first. There are none while the worker
    /// waits for a request.
    pub(crate) fn read(&mut self) -> Result<Vec<Arc<str>>, StackError> {
        match &mut self.stack {
            Stack::Perl(stack) => stack.calls(&self.memory),
            Stack::Python(stack) => stack.calls(&self.memory),
        }
    }
}
