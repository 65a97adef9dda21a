//! Stacks in a memory that holds anything.

use proptest::prelude::*;

use super::layout::WORDS;
use super::*;

/// The memory begins here.
const START: u64 = 0x2000 - 0x800;

/// Memory in one piece, with the head of [`WORDS`] in its middle.
struct Anything(Vec<u8>);

impl Memory for Anything {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let Some(at) = address.checked_sub(START) else { return false };
        let Some(found) = self.0.get(at as usize..).and_then(|rest| rest.get(..bytes.len())) else {
            return false;
        };
        bytes.copy_from_slice(found);
        true
    }
}

/// Returns words many of which are addresses in the memory.
fn words() -> impl Strategy<Value = Vec<u64>> {
    let inside = (START..START + 0x1000).prop_map(|address| address & !7);
    let word = prop_oneof![4 => inside, 1 => 0_u64..0x100, 1 => Just(0xcc), 1 => any::<u64>()];
    proptest::collection::vec(word, 0x200)
}

proptest! {
    #[test]
    fn any_memory_gives_some_frames_or_an_error(words in words(), word in 0..WORDS.len()) {
        let memory = Anything(words.iter().flat_map(|word| word.to_ne_bytes()).collect());
        let mut stack = PythonStack::new(PythonLayout::parse(WORDS[word]).unwrap(), None);
        for _ in 0..3 {
            if let Ok(frames) = stack.calls(&memory) {
                prop_assert!(frames.len() <= 200);
                prop_assert!(frames.iter().all(|frame| !frame.contains([';', '\n'])));
            }
        }
    }

    #[test]
    fn any_numbers_are_a_layout_or_none(
        numbers in proptest::collection::vec(prop_oneof![0_u64..0x200, any::<u64>()], 0..30),
        words in words(),
    ) {
        if let Some(layout) = PythonLayout::from_numbers(&numbers) {
            let memory = Anything(words.iter().flat_map(|word| word.to_ne_bytes()).collect());
            _ = PythonStack::new(layout, None).calls(&memory);
        }
    }

    #[test]
    fn any_table_has_lines_or_none(
        table in proptest::collection::vec(any::<u8>(), 0..100),
        first in any::<u32>(),
        offset in any::<u32>(),
    ) {
        use lines::LineFormat::{Locations, Ranges, Steps};
        for format in [Steps, Ranges, Locations] {
            _ = lines::line(format, &table, first, offset);
        }
    }
}
