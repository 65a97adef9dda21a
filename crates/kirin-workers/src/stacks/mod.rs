//! The Perl stack of a worker, read from outside while the worker runs.
//!
//! The worker does not notice: it gets no signal, so no call in which the application waits ends
//! early, and it does no work for this. Its greeting says where the interpreter keeps the stack
//! ([`layout`]). The kernel gives Kirin the memory of its own workers ([`memory`]). [`walk`] reads
//! the calls, and [`names`] turns them into text.

mod layout;
mod memory;
mod names;
mod walk;

use std::sync::Arc;

pub(crate) use layout::PerlLayout;
use memory::ProcessMemory;
use names::FrameNames;
use walk::Walk;

/// The sub of the adapter that calls the application. Calls outside of it are the same in every
/// request.
const SERVING_SUB: &str = "Kirin::Worker::serve";

/// Why the stack of a worker cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StackError {
    /// The greeting of the worker had no layout.
    #[error(
        "its adapter does not say where the stack is: it is an old one, or for a Perl that it does not know"
    )]
    NoLayout,
    /// The kernel refuses.
    #[error("the system does not let Kirin read its memory: {0}")]
    Refused(String),
    /// The process has ended, or its memory holds something else than a stack.
    #[error("there is no stack")]
    NoStack,
    /// The stack changed while it was read, many times in a row.
    #[error("it changed while it was read")]
    Unstable,
}

/// Reads the stacks of one worker.
pub(crate) struct StackReader {
    memory: ProcessMemory,
    layout: Arc<PerlLayout>,
    names: FrameNames,
    walk: Walk,
}

impl StackReader {
    /// Opens the memory of a worker. File names are shortened if they are below `directory`.
    pub(crate) fn open(
        pid: u32,
        layout: Option<&Arc<PerlLayout>>,
        directory: Option<&std::path::Path>,
    ) -> Result<Self, StackError> {
        let layout = Arc::clone(layout.ok_or(StackError::NoLayout)?);
        let memory = ProcessMemory::open(pid)?;
        Ok(Self { memory, layout, names: FrameNames::new(directory), walk: Walk::default() })
    }

    /// Returns the calls of the application, the outermost first. There are none while the worker
    /// waits for a request.
    pub(crate) fn read(&mut self) -> Result<Vec<Arc<str>>, StackError> {
        let calls = self.walk.calls(&self.memory, &self.layout)?;
        let mut frames = Vec::with_capacity(calls.len());
        for call in calls {
            let frame = self.names.frame(&self.memory, &self.layout, call);
            if frame.sub_is(SERVING_SUB) {
                frames.clear();
            } else {
                frames.push(frame.text());
            }
        }
        Ok(frames)
    }
}
