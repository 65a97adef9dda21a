//! Where CPython keeps its stack: the word `stacks=python:…` of a greeting.
//!
//! The adapter knows these numbers for each version of CPython, and checks them in its own memory
//! (`stack_layout.py`). `docs/worker-protocol.md` lists them.

use super::lines::LineFormat;
use crate::stacks::layout_word;

/// The largest offset of a field, in bytes.
const MAX_OFFSET: u64 = 4096;

/// The largest offset of a field of a frame, in bytes.
const MAX_FRAME_OFFSET: u64 = 256;

/// The most functions that serve.
const MAX_SERVING: usize = 4;

/// Where CPython keeps its stack. Addresses are those of the worker's memory; offsets are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PythonLayout {
    /// The address of the word that refers to the innermost frame, or to an entry with that.
    pub(crate) head: u64,
    /// In an entry (`_PyCFrame`): the address of the innermost frame. None if there are no entries.
    pub(crate) entry_frame: Option<u64>,
    /// In a frame: the address of its code.
    pub(crate) frame_code: u64,
    /// In a frame: the address of the frame that has called; 0 if there is none.
    pub(crate) frame_previous: u64,
    /// In a frame: the instruction that runs.
    pub(crate) frame_instruction: u64,
    /// How a frame says which instruction that is.
    pub(crate) instruction: Instruction,
    /// In a frame: who owns it, a byte. None if each frame is a call.
    pub(crate) frame_owner: Option<u64>,
    /// The bytes of a frame that have these fields.
    pub(crate) frame_bytes: usize,
    /// The type of code objects: an address that each of them has.
    pub(crate) code_type: u64,
    /// In a code object: the addresses of the names of its file and of its function.
    pub(crate) code_file: u64,
    pub(crate) code_name: u64,
    /// In a code object: its first line, 32 bits.
    pub(crate) code_line: u64,
    /// In a code object: the address of the table of its lines.
    pub(crate) code_table: u64,
    /// The format of that table.
    pub(crate) line_format: LineFormat,
    /// In a code object: its first instruction.
    pub(crate) code_first: u64,
    /// In a string: its number of characters.
    pub(crate) text_length: u64,
    /// In a string: the size of its characters, 32 bits.
    pub(crate) text_state: u64,
    /// In a string with ASCII characters only, and in others: the characters.
    pub(crate) text_ascii: u64,
    pub(crate) text_other: u64,
    /// In a bytes object: its length, and its bytes.
    pub(crate) bytes_length: u64,
    pub(crate) bytes_data: u64,
    /// The addresses of the codes of the functions that serve. Calls up to the innermost of them
    /// are the same in every request.
    pub(crate) serving: Vec<u64>,
}

/// How a frame says which instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// By the number of bytes before it, 32 bits; negative before the first one.
    Bytes,
    /// By the number of instructions before it, of two bytes each.
    Count,
    /// By its address.
    Address,
}

impl PythonLayout {
    /// Parses the value of the word. Returns none for another language and for wrong numbers.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        Self::from_numbers(&layout_word::numbers(value, "python")?)
    }

    /// Returns the layout with the numbers of the word. Returns none if they cannot be right.
    pub(crate) fn from_numbers(numbers: &[u64]) -> Option<Self> {
        let (offsets, serving) = numbers.get(3..)?.split_first_chunk::<16>()?;
        if offsets.iter().any(|offset| *offset > MAX_OFFSET) || serving.len() > MAX_SERVING {
            return None;
        }
        let [
            entry_frame,
            frame_code,
            frame_previous,
            frame_instruction,
            frame_owner,
            code_file,
            code_name,
            code_line,
            code_table,
            code_first,
            text_length,
            text_state,
            text_ascii,
            text_other,
            bytes_length,
            bytes_data,
        ] = *offsets;
        let frame = [frame_code, frame_previous, frame_instruction, frame_owner];
        let frame_last = frame.into_iter().max().filter(|last| *last <= MAX_FRAME_OFFSET)?;
        let minor_version = numbers[0];
        let (line_format, instruction) = match minor_version {
            9 => (LineFormat::Steps, Instruction::Bytes),
            10 => (LineFormat::Ranges, Instruction::Count),
            11..=13 => (LineFormat::Locations, Instruction::Address),
            _ => return None,
        };
        Some(Self {
            head: numbers[1],
            entry_frame: matches!(minor_version, 11 | 12).then_some(entry_frame),
            frame_code,
            frame_previous,
            frame_instruction,
            instruction,
            frame_owner: (minor_version >= 12).then_some(frame_owner),
            frame_bytes: frame_last as usize + 8,
            code_type: numbers[2],
            code_file,
            code_name,
            code_line,
            code_table,
            line_format,
            code_first,
            text_length,
            text_state,
            text_ascii,
            text_other,
            bytes_length,
            bytes_data,
            serving: serving.to_vec(),
        })
    }
}

/// The words that the adapter sends with some versions of CPython.
#[cfg(test)]
pub(crate) const WORDS: [&str; 5] = [
    "python:9,2000,cc,0,20,18,68,0,68,70,28,78,0,10,20,30,48,10,20,a1,a2",
    "python:a,2000,cc,0,20,18,60,0,68,70,28,78,0,10,20,30,48,10,20,a1,a2",
    "python:b,2000,cc,8,20,30,38,45,70,80,48,88,b8,10,20,30,48,10,20,a1,a2",
    "python:c,2000,cc,0,0,8,38,46,70,80,44,88,c0,10,20,28,38,10,20,a1,a2",
    "python:d,2000,cc,0,0,8,38,46,70,80,44,88,c8,10,20,28,38,10,20,a1,a2",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_have_their_order() {
        let layout = PythonLayout::parse(WORDS[2]).unwrap();
        assert_eq!((layout.head, layout.code_type), (0x2000, 0xcc));
        assert_eq!(layout.entry_frame, Some(8));
        assert_eq!((layout.frame_code, layout.frame_previous), (0x20, 0x30));
        assert_eq!((layout.frame_instruction, layout.frame_bytes), (0x38, 0x45 + 8));
        assert_eq!((layout.code_line, layout.code_table, layout.code_first), (0x48, 0x88, 0xb8));
        assert_eq!((layout.text_ascii, layout.text_other), (0x30, 0x48));
        assert_eq!((layout.bytes_length, layout.bytes_data), (0x10, 0x20));
        assert_eq!(layout.serving, [0xa1, 0xa2]);
    }

    #[test]
    fn the_version_decides_the_formats() {
        let formats = WORDS.map(|word| {
            let layout = PythonLayout::parse(word).unwrap();
            let has = (layout.entry_frame.is_some(), layout.frame_owner.is_some());
            (layout.instruction, layout.line_format, has)
        });
        let (address, locations) = (Instruction::Address, LineFormat::Locations);
        assert_eq!(
            formats,
            [
                (Instruction::Bytes, LineFormat::Steps, (false, false)),
                (Instruction::Count, LineFormat::Ranges, (false, false)),
                (address, locations, (true, false)),
                (address, locations, (true, true)),
                (address, locations, (false, true)),
            ]
        );
    }

    #[test]
    fn other_words_are_no_layout() {
        let word = WORDS[3];
        for word in [
            "",
            "python",
            "python:",
            "python:c",
            "python:c,2000,cc",
            // Versions that are not known.
            &word.replace(":c,", ":8,"),
            &word.replace(":c,", ":e,"),
            // One number too few, one that is no number, two that are no offsets.
            "python:c,2000,cc,0,0,8,38,46,70,80,44,88,c0,10,20,28,38,10",
            &word.replace(",c0,", ",x,"),
            &word.replace(",c0,", ",100000,"),
            &word.replace(",38,46,", ",101,46,"),
            // Too many functions that serve.
            &format!("{word},a3,a4,a5"),
        ] {
            assert_eq!(PythonLayout::parse(word), None, "{word}");
        }
    }
}
