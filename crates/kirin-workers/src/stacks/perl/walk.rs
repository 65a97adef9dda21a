//! The calls on the stack of a Perl interpreter.
//!
//! Perl has a stack of contexts: calls, loops, blocks. Code that the interpreter calls itself, such
//! as the comparison of a sort or a destructor, gets a stack of its own, which points to the one
//! below it. Each call has its sub and the statement that has called. The statement of the
//! innermost call is a variable of the interpreter.

use super::layout::{PerlLayout, STACK_INFO_BYTES};
use crate::stacks::memory::Memory;
use crate::stacks::stack_error::StackError;

/// How often a stack is read again that has changed in the meantime.
const TRIES: usize = 40;

/// The most stacks on top of each other that are read.
const MAX_STACKS: usize = 64;

/// The most contexts that are read, the innermost ones.
const MAX_CONTEXTS: u64 = 4096;

/// The most calls that are returned, the innermost ones.
const MAX_CALLS: usize = 200;

/// The bits of a context's first byte that say what it is. The others are flags.
const TYPE_OF_CONTEXT: u8 = 0xF;

/// A call on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    /// The address of the sub.
    pub(crate) cv: u64,
    /// The address of the statement that runs in it.
    pub(crate) cop: u64,
}

/// A stack of contexts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stack {
    /// The address of the stack itself.
    info: u64,
    /// The address of its first context.
    contexts: u64,
    /// The number of contexts.
    count: u64,
    /// The address of the stack below this one; 0 if there is none.
    below: u64,
}

impl Stack {
    fn at(memory: &impl Memory, layout: &PerlLayout, info: u64) -> Option<Self> {
        let mut bytes = [0; STACK_INFO_BYTES as usize];
        memory.read(info, &mut bytes).then_some(())?;
        Self::parse(layout, info, &bytes)
    }

    fn parse(layout: &PerlLayout, info: u64, bytes: &[u8]) -> Option<Self> {
        let index = i32::from_ne_bytes(*bytes.get(layout.info_index as usize..)?.first_chunk()?);
        Some(Self {
            info,
            contexts: word_in(bytes, layout.info_contexts)?,
            // The index of the last context is -1 without contexts.
            count: u64::try_from(i64::from(index) + 1).ok()?,
            below: word_in(bytes, layout.info_previous)?,
        })
    }

    /// Returns the addresses and the number of its last `most` contexts.
    fn last(&self, layout: &PerlLayout, most: u64) -> (u64, u64) {
        let count = self.count.min(most);
        let skipped = (self.count - count).wrapping_mul(layout.context_bytes);
        (self.contexts.wrapping_add(skipped), count)
    }
}

/// Reads the calls of one process again and again.
///
/// The process runs meanwhile, and a call may take less time than to read it. So all that changes
/// is read with one system call, and the parts that change most at its begin and at its end. That
/// needs the addresses of the last time.
#[derive(Default)]
pub(crate) struct Walk {
    last: Stack,
}

impl Walk {
    /// Returns the calls, the outermost first.
    pub(crate) fn calls(
        &mut self,
        memory: &impl Memory,
        layout: &PerlLayout,
    ) -> Result<Vec<Call>, StackError> {
        for _ in 0..TRIES {
            if let Some((cop, stack, contexts)) = self.read(memory, layout) {
                let left = MAX_CONTEXTS - contexts.len() as u64 / layout.context_bytes;
                let mut subs = Vec::new();
                add_subs(&contexts, layout, &mut subs);
                add_below(memory, layout, stack.below, left, &mut subs);
                subs.reverse();
                return Ok(with_statements(&subs, cop));
            }
            let info = memory.word(layout.stack_info).ok_or(StackError::NoStack)?;
            self.last = Stack::at(memory, layout, info).ok_or(StackError::NoStack)?;
        }
        Err(StackError::Unstable)
    }

    /// Returns the present statement, the innermost stack and its contexts. Returns none if they
    /// are not where they were, or changed meanwhile.
    fn read(&self, memory: &impl Memory, layout: &PerlLayout) -> Option<(u64, Stack, Vec<u8>)> {
        let (first, count) = self.last.last(layout, MAX_CONTEXTS);
        let mut contexts = vec![0; (count * layout.context_bytes) as usize];
        let [mut cop, mut cop_between, mut cop_after, mut info] = [[0; 8]; 4];
        let [mut bytes, mut bytes_after] = [[0; STACK_INFO_BYTES as usize]; 2];
        let is_read = memory.read_all(&mut [
            (layout.cop, &mut cop),
            (self.last.info, &mut bytes),
            (layout.cop, &mut cop_between),
            (first, &mut contexts),
            (self.last.info, &mut bytes_after),
            (layout.cop, &mut cop_after),
            (layout.stack_info, &mut info),
        ]);
        let stack = Stack::parse(layout, u64::from_ne_bytes(info), &bytes)?;
        // A stack may have become less deep.
        let is_there = Stack { count: stack.count.max(self.last.count), ..stack } == self.last;
        let is_same = bytes == bytes_after && cop == cop_between && cop == cop_after;
        if !is_read || !is_there || !is_same {
            return None;
        }
        let gone = (self.last.count - stack.count).min(count) * layout.context_bytes;
        contexts.truncate(contexts.len() - gone as usize);
        Some((u64::from_ne_bytes(cop), stack, contexts))
    }
}

/// Adds the called subs with the statements that have called them, the innermost first.
fn add_subs(contexts: &[u8], layout: &PerlLayout, subs: &mut Vec<Call>) {
    for context in contexts.rchunks_exact(layout.context_bytes as usize) {
        if context[0] & TYPE_OF_CONTEXT == layout.context_sub
            && let Some(cv) = word_in(context, layout.context_cv)
            && let Some(cop) = word_in(context, layout.context_cop)
        {
            subs.push(Call { cv, cop });
        }
    }
}

/// Adds the subs of the stacks below. These do not change while the innermost one does.
fn add_below(
    memory: &impl Memory,
    layout: &PerlLayout,
    mut info: u64,
    mut contexts_left: u64,
    subs: &mut Vec<Call>,
) {
    for _ in 0..MAX_STACKS {
        if info == 0 || contexts_left == 0 {
            return;
        }
        let Some(stack) = Stack::at(memory, layout, info) else { return };
        let (first, count) = stack.last(layout, contexts_left);
        let mut contexts = vec![0; (count * layout.context_bytes) as usize];
        if count > 0 && !memory.read(first, &mut contexts) {
            return;
        }
        add_subs(&contexts, layout, subs);
        contexts_left -= count;
        info = stack.below;
    }
}

fn word_in(bytes: &[u8], offset: u64) -> Option<u64> {
    let bytes = bytes.get(offset as usize..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// Gives each sub the statement that runs in it: the one that has called the next sub, and in the
/// innermost one the present statement. A call that begins or ends just now is left out: the
/// present statement is still the one that has called, or the sub is gone.
fn with_statements(subs: &[Call], present: u64) -> Vec<Call> {
    let (subs, present) = match subs {
        [outer @ .., last] if last.cop == present || last.cv == 0 => (outer, last.cop),
        all => (all, present),
    };
    let running = subs.iter().skip(1).map(|next| next.cop).chain([present]);
    let calls = subs.iter().zip(running).map(|(sub, cop)| Call { cv: sub.cv, cop });
    calls.skip(subs.len().saturating_sub(MAX_CALLS)).collect()
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
