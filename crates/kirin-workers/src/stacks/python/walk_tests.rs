//! Stacks in a memory that tests write.

use super::super::fake_memory::{FRAME_BYTES, FakeMemory};
use super::super::layout::WORDS;
use super::*;

/// The code of a function that serves, in [`WORDS`].
const SERVES: u64 = 0xa2;

/// Returns the address of a frame, counted from the outermost one.
fn place(number: usize) -> u64 {
    0x10_0000 + (FRAME_BYTES * number) as u64
}

fn layouts() -> [PythonLayout; 5] {
    WORDS.map(|word| PythonLayout::parse(word).unwrap())
}

/// Returns a memory with a stack: the codes, instructions and owners, the outermost first.
fn memory(layout: &PythonLayout, frames: &[(u64, u64, u8)]) -> FakeMemory {
    let mut memory = FakeMemory::default();
    let mut below = 0;
    for (number, frame) in frames.iter().enumerate() {
        memory.write_frame(layout, place(number), *frame, below);
        below = place(number);
    }
    memory.set_head(layout, below);
    memory
}

fn pairs(calls: Result<Vec<Call>, StackError>) -> Vec<(u64, u64)> {
    calls.unwrap().into_iter().map(|call| (call.code, call.instruction)).collect()
}

#[test]
fn each_call_has_its_code_and_its_instruction() {
    for layout in layouts() {
        let memory = memory(&layout, &[(1, 10, 0), (SERVES, 20, 0), (2, 30, 0), (3, 40, 1)]);
        assert_eq!(pairs(Walk::default().calls(&memory, &layout)), [(2, 30), (3, 40)]);
    }
}

#[test]
fn there_are_no_calls_while_the_worker_waits() {
    for layout in layouts() {
        let memory = memory(&layout, &[(1, 10, 0), (SERVES, 20, 0)]);
        assert_eq!(pairs(Walk::default().calls(&memory, &layout)), []);
    }
}

#[test]
fn a_stack_without_the_function_that_serves_is_complete() {
    // A greenlet has a stack of its own.
    for layout in layouts() {
        let memory = memory(&layout, &[(1, 10, 0), (2, 20, 0)]);
        assert_eq!(pairs(Walk::default().calls(&memory, &layout)), [(1, 10), (2, 20)]);
        let memory = self::memory(&layout, &[(1, 10, 0)]);
        assert_eq!(pairs(Walk::default().calls(&memory, &layout)), [(1, 10)]);
        let memory = self::memory(&layout, &[]);
        assert_eq!(pairs(Walk::default().calls(&memory, &layout)), []);
    }
}

#[test]
fn a_frame_of_code_in_c_is_no_call() {
    let [.., with_owners, newest] = layouts();
    for layout in [with_owners, newest] {
        let frames = [(SERVES, 20, 0), (2, 30, 0), (9, 1, OWNED_BY_C), (3, 40, 0)];
        let memory = memory(&layout, &frames);
        assert_eq!(pairs(Walk::default().calls(&memory, &layout)), [(2, 30), (3, 40)]);
    }
}

#[test]
fn the_instruction_of_old_versions_has_32_bits() {
    let [old, older, new, ..] = layouts();
    for (layout, expected) in [(old, 0xFFFF_FFFE), (older, 0xFFFF_FFFE), (new, 0x7_FFFF_FFFE)] {
        let memory = memory(&layout, &[(SERVES, 20, 0), (2, 0x7_FFFF_FFFE, 0)]);
        assert_eq!(pairs(Walk::default().calls(&memory, &layout)), [(2, expected)]);
    }
}

#[test]
fn a_walk_finds_other_stacks_than_the_last_one() {
    for layout in layouts() {
        let mut walk = Walk::default();
        for depth in [1, 5, 2, 50, 3, 4, 1] {
            let inner = (1..depth).map(|number| (number, number * 10, 0));
            let frames: Vec<_> = [(SERVES, 0, 0)].into_iter().chain(inner).collect();
            let expected: Vec<_> = (1..depth).map(|number| (number, number * 10)).collect();
            let memory = memory(&layout, &frames);
            // Memory of the last stack may be gone, which a new memory is.
            assert_eq!(pairs(walk.calls(&memory, &layout)), expected);
        }
    }
}

#[test]
fn inner_calls_that_change_meanwhile_are_left_out() {
    let [.., layout] = layouts();
    let mut memory = memory(&layout, &[(SERVES, 0, 0), (1, 10, 0), (2, 20, 0)]);
    memory.write_frame(&layout, place(3), (3, 30, 0), place(2));
    memory.heads = (layout.head, vec![place(3), place(2)]);
    assert_eq!(pairs(Walk::default().calls(&memory, &layout)), [(1, 10), (2, 20)]);
    // The innermost of the two stacks is the function that serves.
    memory.heads.1 = vec![place(0), place(1)];
    assert!(matches!(Walk::default().calls(&memory, &layout), Err(StackError::Unstable)));
}

#[test]
fn memory_that_is_gone_is_forgotten() {
    for layout in layouts() {
        let mut walk = Walk::default();
        let mut memory = memory(&layout, &[(SERVES, 0, 0), (1, 10, 0), (2, 20, 0)]);
        assert_eq!(pairs(walk.calls(&memory, &layout)), [(1, 10), (2, 20)]);
        memory.set_head(&layout, place(1));
        memory.forget_frame(place(2));
        assert_eq!(pairs(walk.calls(&memory, &layout)), [(1, 10)]);
    }
}

#[test]
fn what_a_worker_has_in_its_memory_costs_little() {
    for layout in layouts() {
        // No memory at all.
        let empty = FakeMemory::default();
        assert!(matches!(Walk::default().calls(&empty, &layout), Err(StackError::NoStack)));
        // A head that is no frame.
        let mut memory = memory(&layout, &[(1, 1, 0)]);
        memory.set_head(&layout, u64::MAX);
        assert!(matches!(Walk::default().calls(&memory, &layout), Err(StackError::Unstable)));
        // Two frames that have called each other.
        memory.write_frame(&layout, place(0), (1, 10, 0), place(1));
        memory.write_frame(&layout, place(1), (2, 20, 0), place(0));
        memory.set_head(&layout, place(0));
        assert!(
            Walk::default().calls(&memory, &layout).is_ok_and(|calls| calls.len() <= MAX_CALLS)
        );
        // A recursion: the innermost calls are read.
        let deep: Vec<_> = (0..1000).map(|number| (number + 0x1000, number, 0)).collect();
        let calls = pairs(Walk::default().calls(&self::memory(&layout, &deep), &layout));
        assert_eq!((calls.len(), calls.last()), (MAX_CALLS, Some(&(0x1000 + 999, 999))));
    }
}
