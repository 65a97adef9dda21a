//! The strings and bytes of CPython (`PyUnicodeObject`, `PyBytesObject`).

use super::layout::PythonLayout;
use crate::stacks::memory::Memory;

/// The most characters of a string that are read. A longer one is cut.
const MAX_CHARACTERS: u64 = 1024;

/// The most bytes of a bytes object that are read. A longer one is cut.
const MAX_BYTES: u64 = 256 * 1024;

/// The state of a string: where the size of its characters is, and two flags.
const SIZE_SHIFT: u32 = 2;
const SIZE_MASK: u32 = 7;
const IS_COMPACT: u32 = 1 << 5;
const IS_ASCII: u32 = 1 << 6;

/// Returns the string at an address.
pub(crate) fn string(memory: &impl Memory, layout: &PythonLayout, at: u64) -> Option<String> {
    let length = memory.word(at.wrapping_add(layout.text_length))?.min(MAX_CHARACTERS);
    let state = memory.half_word(at.wrapping_add(layout.text_state))?;
    if state & IS_COMPACT == 0 {
        return None;
    }
    let place = if state & IS_ASCII == 0 { layout.text_other } else { layout.text_ascii };
    let size = (state >> SIZE_SHIFT) & SIZE_MASK;
    let mut bytes = vec![0; (length * u64::from(size)) as usize];
    if !memory.read(at.wrapping_add(place), &mut bytes) {
        return None;
    }
    // A string may have half of a surrogate pair, for example for a file name that is not UTF-8.
    let character = |number: u32| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    let (pairs, fours) = (bytes.as_chunks().0, bytes.as_chunks().0);
    match size {
        1 => Some(bytes.iter().copied().map(char::from).collect()),
        2 => Some(pairs.iter().map(|pair| character(u16::from_ne_bytes(*pair).into())).collect()),
        4 => Some(fours.iter().map(|four| character(u32::from_ne_bytes(*four))).collect()),
        _ => None,
    }
}

/// Returns the bytes object at an address.
pub(crate) fn bytes(memory: &impl Memory, layout: &PythonLayout, at: u64) -> Option<Vec<u8>> {
    let length = memory.word(at.wrapping_add(layout.bytes_length))?.min(MAX_BYTES);
    let mut bytes = vec![0; length as usize];
    memory.read(at.wrapping_add(layout.bytes_data), &mut bytes).then_some(bytes)
}
