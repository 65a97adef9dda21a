//! Names in a memory that tests write.

use super::super::fake_memory::FakeMemory;
use super::super::layout::WORDS;
use super::*;

const CODE: u64 = 0x10_0000;
const FILE: u64 = 0x20_0000;
const NAME: u64 = 0x30_0000;
const TABLE: u64 = 0x40_0000;

/// Writes a string as CPython does: with the smallest size that all its characters have.
fn write_string(memory: &mut FakeMemory, layout: &PythonLayout, at: u64, text: &str) {
    let highest = text.chars().map(u32::from).max().unwrap_or(0);
    let (size, place): (u32, _) = match highest {
        0..0x80 => (1, layout.text_ascii),
        0x80..0x100 => (1, layout.text_other),
        0x100..0x1_0000 => (2, layout.text_other),
        _ => (4, layout.text_other),
    };
    let ascii = if highest < 0x80 { 64 } else { 0 };
    memory.write_word(at + layout.text_length, text.chars().count() as u64);
    // Flags that do not matter here are set, too.
    memory.write(at + layout.text_state, &((size << 2) | 32 | ascii | 0x83).to_ne_bytes());
    for (number, character) in text.chars().enumerate() {
        let bytes = u32::from(character).to_le_bytes();
        memory.write(at + place + u64::from(size) * number as u64, &bytes[..size as usize]);
    }
    memory.write(at + place + u64::from(size) * text.chars().count() as u64, &[0; 4]);
}

/// Writes a code object whose second instruction is in line 9, and returns a call with that.
fn write_code(memory: &mut FakeMemory, layout: &PythonLayout, name: &str, file: &str) -> Call {
    write_string(memory, layout, FILE, file);
    write_string(memory, layout, NAME, name);
    let table: &[u8] = match layout.line_format {
        lines::LineFormat::Steps => &[0, 1, 2, 1],
        lines::LineFormat::Ranges => &[2, 1, 2, 1],
        lines::LineFormat::Locations => &[0xD8, 0, 1, 0xD8, 0, 1],
    };
    memory.write_word(TABLE + layout.bytes_length, table.len() as u64);
    memory.write(TABLE + layout.bytes_data, table);
    memory.write_word(CODE + TYPE, layout.code_type);
    memory.write_word(CODE + layout.code_file, FILE);
    memory.write_word(CODE + layout.code_name, NAME);
    memory.write_word(CODE + layout.code_table, TABLE);
    memory.write(CODE + layout.code_line, &7_u32.to_ne_bytes());
    let instruction = match layout.instruction {
        Instruction::Bytes => 2,
        Instruction::Count => 1,
        Instruction::Address => CODE + layout.code_first + 2,
    };
    Call { code: CODE, instruction }
}

fn layouts() -> [PythonLayout; 5] {
    WORDS.map(|word| PythonLayout::parse(word).unwrap())
}

fn frame(memory: &FakeMemory, layout: &PythonLayout, call: Call) -> Option<Arc<str>> {
    FrameNames::new(Some(Path::new("/srv/shop"))).frame(memory, layout, call)
}

#[test]
fn a_frame_has_function_file_and_line() {
    for layout in layouts() {
        let long = "x".repeat(2000);
        for (name, file, expected) in [
            ("Cart.add", "/srv/shop/cart.py", "Cart.add (cart.py:9)"),
            ("Büro", "/srv/shopping/é.py", "Büro (/srv/shopping/é.py:9)"),
            ("計算", "<string>", "計算 (<string>:9)"),
            ("𐍈", "a;b\nc", "𐍈 (a?b?c:9)"),
            (&long, "a.py", &format!("{} (a.py:9)", &long[..1024])),
        ] {
            let mut memory = FakeMemory::default();
            let call = write_code(&mut memory, &layout, name, file);
            assert_eq!(frame(&memory, &layout, call).as_deref(), Some(expected));
        }
    }
}

#[test]
fn a_call_before_its_first_instruction_is_in_the_first_line() {
    for layout in layouts() {
        let mut memory = FakeMemory::default();
        let call = write_code(&mut memory, &layout, "f", "a.py");
        let instruction = match layout.instruction {
            Instruction::Bytes | Instruction::Count => u64::from(u32::MAX),
            Instruction::Address => CODE + layout.code_first - 2,
        };
        let text = frame(&memory, &layout, Call { instruction, ..call });
        assert_eq!(text.as_deref(), Some("f (a.py:7)"));
    }
}

#[test]
fn code_that_is_gone_has_no_name() {
    for layout in layouts() {
        let mut memory = FakeMemory::default();
        let call = write_code(&mut memory, &layout, "f", "a.py");
        for address in [0, 8, u64::MAX, CODE + 8] {
            assert_eq!(frame(&memory, &layout, Call { code: address, ..call }), None);
        }
        // Another object has its memory.
        memory.write_word(CODE + TYPE, layout.code_type + 8);
        assert_eq!(frame(&memory, &layout, call), None);
    }
}

#[test]
fn memory_that_is_no_string_is_no_name() {
    for layout in layouts() {
        for state in [0_u32, 32 | (3 << 2), 32, 1 << 2] {
            let mut memory = FakeMemory::default();
            let call = write_code(&mut memory, &layout, "f", "a.py");
            memory.write(NAME + layout.text_state, &state.to_ne_bytes());
            assert_eq!(frame(&memory, &layout, call), None, "{state:x}");
        }
        // A length that cannot be.
        let mut memory = FakeMemory::default();
        let call = write_code(&mut memory, &layout, "f", "a.py");
        memory.write_word(NAME + layout.text_length, u64::MAX);
        assert_eq!(frame(&memory, &layout, call), None);
    }
}

#[test]
fn half_of_a_surrogate_pair_is_replaced() {
    for layout in layouts() {
        let mut memory = FakeMemory::default();
        let call = write_code(&mut memory, &layout, "f", "€.py");
        memory.write(FILE + layout.text_other, &0xDC80_u16.to_ne_bytes());
        assert_eq!(frame(&memory, &layout, call).as_deref(), Some("f (\u{FFFD}.py:9)"));
    }
}
