//! The text of a call: `Class.function (file:line)`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::layout::{Instruction, PythonLayout};
use super::walk::Call;
use super::{lines, text};
use crate::stacks::call_text::CallText;
use crate::stacks::memory::Memory;

/// The offset of the type in an object.
const TYPE: u64 = 8;

/// The most calls whose text is kept.
const MAX_KNOWN: usize = 16 * 1024;

/// The texts of calls that have been seen.
///
/// Python may use the memory of a code object again that was freed, such as that of `eval`. The
/// text of such a call may be that of an earlier one.
pub(crate) struct FrameNames {
    known: HashMap<Call, Arc<str>>,
    text: CallText,
}

impl FrameNames {
    pub(crate) fn new(directory: Option<&Path>) -> Self {
        Self { known: HashMap::new(), text: CallText::new(directory) }
    }

    /// Returns the text of a call. Returns none if its code is not there any more: code that `eval`
    /// compiles may be gone when its name is read.
    pub(crate) fn frame(
        &mut self,
        memory: &impl Memory,
        layout: &PythonLayout,
        call: Call,
    ) -> Option<Arc<str>> {
        if let Some(text) = self.known.get(&call) {
            return Some(Arc::clone(text));
        }
        let name = |field| {
            let address = memory.word(call.code.wrapping_add(field))?;
            text::string(memory, layout, address)
        };
        let (function, file) = (name(layout.code_name)?, name(layout.code_file)?);
        let line = line(memory, layout, call)?;
        // This is the last read, because the memory of the others may have changed meanwhile.
        if memory.word(call.code.wrapping_add(TYPE))? != layout.code_type {
            return None;
        }
        let text = self.text.of(&function, &file, line);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(call, Arc::clone(&text));
        Some(text)
    }
}

/// Returns the line of a call. It is the first one of the function if the instruction has none.
fn line(memory: &impl Memory, layout: &PythonLayout, call: Call) -> Option<u32> {
    let first = memory.half_word(call.code.wrapping_add(layout.code_line))?;
    let table = memory.word(call.code.wrapping_add(layout.code_table))?;
    let table = text::bytes(memory, layout, table)?;
    let found = offset(layout, call)
        .and_then(|offset| lines::line(layout.line_format, &table, first, offset));
    Some(found.unwrap_or(first))
}

/// Returns the number of bytes before the instruction. Returns none before the first one.
fn offset(layout: &PythonLayout, call: Call) -> Option<u32> {
    let number = match layout.instruction {
        Instruction::Bytes => call.instruction,
        Instruction::Count => call.instruction.checked_mul(2)?,
        Instruction::Address => {
            call.instruction.checked_sub(call.code.checked_add(layout.code_first)?)?
        }
    };
    i32::try_from(number).ok()?.try_into().ok()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
