//! A memory that tests write.

use std::cell::Cell;
use std::collections::HashMap;

use super::layout::PythonLayout;
use crate::stacks::memory::Memory;

/// The bytes of a frame with its variables.
pub(super) const FRAME_BYTES: usize = 0x200;

/// The bytes at each address. Reading the head may change it.
#[derive(Default)]
pub(super) struct FakeMemory {
    bytes: HashMap<u64, u8>,
    /// The heads that are read one after the other, again and again, in place of the written one.
    pub(super) heads: (u64, Vec<u64>),
    reads: Cell<usize>,
}

impl Memory for FakeMemory {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        if address == self.heads.0 && !self.heads.1.is_empty() {
            let at = self.reads.replace(self.reads.get() + 1) % self.heads.1.len();
            bytes.copy_from_slice(&self.heads.1[at].to_ne_bytes());
            return true;
        }
        bytes.iter_mut().enumerate().all(|(index, byte)| {
            let found = self.bytes.get(&address.wrapping_add(index as u64));
            found.is_some_and(|found| {
                *byte = *found;
                true
            })
        })
    }
}

impl FakeMemory {
    pub(super) fn write(&mut self, address: u64, bytes: &[u8]) {
        self.bytes.extend((address..).zip(bytes.iter().copied()));
    }

    pub(super) fn write_word(&mut self, address: u64, word: u64) {
        self.write(address, &word.to_ne_bytes());
    }

    pub(super) fn forget_frame(&mut self, address: u64) {
        (address..address + FRAME_BYTES as u64).for_each(|at| _ = self.bytes.remove(&at));
    }

    /// Makes a frame the innermost one.
    pub(super) fn set_head(&mut self, layout: &PythonLayout, frame: u64) {
        match layout.entry_frame {
            None => self.write_word(layout.head, frame),
            Some(offset) => {
                self.write_word(layout.head, 0x3000);
                self.write_word(0x3000 + offset, frame);
            }
        }
    }

    /// Writes a frame. `owner` counts only in versions whose frames have one.
    pub(super) fn write_frame(
        &mut self,
        layout: &PythonLayout,
        address: u64,
        (code, instruction, owner): (u64, u64, u8),
        previous: u64,
    ) {
        self.write(address, &[0xEE; FRAME_BYTES]);
        self.write_word(address + layout.frame_code, code);
        self.write_word(address + layout.frame_previous, previous);
        self.write_word(address + layout.frame_instruction, instruction);
        if let Some(offset) = layout.frame_owner {
            self.write(address + offset, &[owner]);
        }
    }
}
