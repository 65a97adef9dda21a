//! Stacks in a memory that tests write.

use std::cell::Cell;
use std::collections::HashMap;

use super::*;

/// Returns the layout of Perl 5.36 with threads.
fn layout() -> PerlLayout {
    PerlLayout::parse("perl:1000,1010,8,20,10,68,9,10,48,24,30,0,38,20,9,20,28,20,0").unwrap()
}

/// The type of a context that is a loop, with a flag.
const LOOP: u8 = 0x25;

/// Memory of 64 bits at each address. Reading the present statement may change it.
#[derive(Default)]
struct FakeMemory {
    words: HashMap<u64, u64>,
    /// The statements that are read one after the other, and then the last one again and again.
    statements: Vec<u64>,
    reads: Cell<usize>,
}

impl Memory for FakeMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        if address == layout().cop && !self.statements.is_empty() {
            let at = self.reads.get().min(self.statements.len() - 1);
            self.reads.set(at + 1);
            bytes.copy_from_slice(&self.statements[at].to_ne_bytes());
            return true;
        }
        bytes.chunks_mut(8).enumerate().all(|(index, chunk)| {
            let word = self.words.get(&(address + 8 * index as u64));
            word.is_some_and(|word| {
                chunk.copy_from_slice(&word.to_ne_bytes()[..chunk.len()]);
                true
            })
        })
    }
}

impl FakeMemory {
    /// Returns a memory with one stack of contexts: the type, the calling statement and the sub.
    fn with(contexts: &[(u8, u64, u64)], present: u64) -> Self {
        let mut memory = Self::default();
        memory.words.insert(layout().cop, present);
        memory.add_stack(0x2000, 0, contexts);
        memory
    }

    /// Adds a stack that is on top of `below`, and makes it the present one.
    fn add_stack(&mut self, info: u64, below: u64, contexts: &[(u8, u64, u64)]) {
        let layout = layout();
        self.words.insert(layout.stack_info, info);
        (0..STACK_INFO_BYTES).step_by(8).for_each(|at| _ = self.words.insert(info + at, 0));
        let first = info * 0x100;
        self.words.insert(info + layout.info_contexts, first);
        let index = contexts.len() as i32 - 1;
        self.words.insert(info + layout.info_index, u64::from(index.cast_unsigned()));
        self.words.insert(info + layout.info_previous, below);
        for (number, (kind, cop, cv)) in contexts.iter().enumerate() {
            let context = first + number as u64 * layout.context_bytes;
            (0..layout.context_bytes)
                .step_by(8)
                .for_each(|at| _ = self.words.insert(context + at, 0));
            self.words.insert(context, u64::from(*kind));
            self.words.insert(context + layout.context_cop, *cop);
            self.words.insert(context + layout.context_cv, *cv);
        }
    }

    fn calls(&self) -> Result<Vec<(u64, u64)>, StackError> {
        let calls = Walk::default().calls(self, &layout())?;
        Ok(calls.into_iter().map(|call| (call.cv, call.cop)).collect())
    }
}

#[test]
fn each_sub_has_the_statement_that_runs_in_it() {
    let contexts = [(9, 1, 0xA), (LOOP, 2, 7), (9, 3, 0xB), (0x49, 4, 0xC), (LOOP, 6, 7)];
    let memory = FakeMemory::with(&contexts, 5);
    assert_eq!(memory.calls().unwrap(), [(0xA, 3), (0xB, 4), (0xC, 5)]);
}

#[test]
fn a_stack_stands_on_the_one_below_it() {
    let mut memory = FakeMemory::with(&[(9, 1, 0xA)], 5);
    // A sort has a block that is no sub, and calls one.
    memory.add_stack(0x3000, 0x2000, &[(0, 2, 0), (9, 3, 0xB)]);
    assert_eq!(memory.calls().unwrap(), [(0xA, 3), (0xB, 5)]);
    memory.add_stack(0x4000, 0x3000, &[]);
    assert_eq!(memory.calls().unwrap(), [(0xA, 3), (0xB, 5)]);
}

#[test]
fn a_call_that_begins_or_ends_is_left_out() {
    // Its caller still runs.
    let memory = FakeMemory::with(&[(9, 1, 0xA), (9, 5, 0xB)], 5);
    assert_eq!(memory.calls().unwrap(), [(0xA, 5)]);
    // Its sub is gone.
    let memory = FakeMemory::with(&[(9, 1, 0xA), (9, 2, 0)], 5);
    assert_eq!(memory.calls().unwrap(), [(0xA, 2)]);
}

#[test]
fn a_stack_that_changes_is_read_again() {
    let mut memory = FakeMemory::with(&[(9, 1, 0xA)], 5);
    memory.statements = vec![5, 6, 7, 8, 8, 8, 8];
    assert_eq!(memory.calls().unwrap(), [(0xA, 8)]);
    let mut memory = FakeMemory::with(&[(9, 1, 0xA)], 5);
    memory.statements = (0..1000).collect();
    assert!(matches!(memory.calls(), Err(StackError::Unstable)));
}

#[test]
fn a_deeper_or_flatter_stack_is_found_from_the_last_one() {
    let (mut memory, mut walk) = (FakeMemory::with(&[(9, 1, 0xA)], 5), Walk::default());
    let mut cvs = |memory: &FakeMemory| -> Vec<u64> {
        walk.calls(memory, &layout()).unwrap().iter().map(|call| call.cv).collect()
    };
    assert_eq!(cvs(&memory), [0xA]);
    memory.add_stack(0x2000, 0, &[(9, 1, 0xA), (9, 2, 0xB), (9, 3, 0xC)]);
    assert_eq!(cvs(&memory), [0xA, 0xB, 0xC]);
    memory.add_stack(0x2000, 0, &[(9, 1, 0xA)]);
    assert_eq!(cvs(&memory), [0xA]);
    memory.add_stack(0x3000, 0x2000, &[(9, 3, 0xD)]);
    assert_eq!(cvs(&memory), [0xA, 0xD]);
}

#[test]
fn what_a_worker_has_in_its_memory_costs_little() {
    let layout = layout();
    // No memory at all.
    assert!(matches!(FakeMemory::default().calls(), Err(StackError::NoStack)));
    // A stack that is below itself.
    let mut memory = FakeMemory::with(&[(9, 1, 0xA)], 5);
    memory.add_stack(0x3000, 0x3000, &[(9, 3, 0xB)]);
    assert!(memory.calls().unwrap().len() <= 1 + MAX_STACKS);
    // A depth that cannot be.
    for index in [i32::MAX, i32::MIN, -2] {
        memory.words.insert(0x3000 + layout.info_index, u64::from(index.cast_unsigned()));
        assert!(memory.calls().is_err(), "{index}");
    }
    // A recursion: the innermost calls are read.
    let deep: Vec<_> = (0..5000).map(|number| (9, number, 0x100 + number)).collect();
    let calls = FakeMemory::with(&deep, 1).calls().unwrap();
    assert_eq!((calls.len(), calls.last()), (MAX_CALLS, Some(&(0x100 + 4999, 1))));
}
