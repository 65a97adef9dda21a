//! The lines of instructions: the tables that a code object has.

/// The format of a table of lines. CPython has changed it twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// Python 3.9 (`co_lnotab`): steps of an offset and a line.
    Steps,
    /// Python 3.10 (PEP 626): ranges of instructions with a step of the line.
    Ranges,
    /// Python 3.11 and later (`Objects/locations.md`): ranges with lines and columns.
    Locations,
}

/// The step of a range without a line.
const NO_LINE: i8 = -128;

/// The bytes of an instruction, in which the ranges of [`LineFormat::Locations`] are counted.
const INSTRUCTION_BYTES: u32 = 2;

/// The bit of the first byte of a location.
const BEGINS: u8 = 0x80;
/// The bit of a byte of a number that says that more follow.
const MORE: u8 = 0x40;

/// Returns the line of the instruction at `offset` bytes. Returns none if it has no line, or the
/// table is not one.
pub(crate) fn line(format: LineFormat, table: &[u8], first: u32, offset: u32) -> Option<u32> {
    match format {
        LineFormat::Steps => in_steps(table, first, offset),
        LineFormat::Ranges => in_ranges(table, first, offset),
        LineFormat::Locations => in_locations(table, first, offset),
    }
}

fn in_steps(table: &[u8], first: u32, offset: u32) -> Option<u32> {
    let (mut line, mut at) = (first, 0_u32);
    for [bytes, lines] in table.as_chunks().0 {
        at = at.checked_add((*bytes).into())?;
        if at > offset {
            break;
        }
        line = line.checked_add_signed(lines.cast_signed().into())?;
    }
    Some(line)
}

fn in_ranges(table: &[u8], first: u32, offset: u32) -> Option<u32> {
    let (mut line, mut end) = (first, 0_u32);
    for [bytes, lines] in table.as_chunks().0 {
        let lines = lines.cast_signed();
        if lines != NO_LINE {
            line = line.checked_add_signed(lines.into())?;
        }
        end = end.checked_add((*bytes).into())?;
        if offset < end {
            return (lines != NO_LINE).then_some(line);
        }
    }
    None
}

fn in_locations(table: &[u8], first: u32, offset: u32) -> Option<u32> {
    let (mut line, mut end) = (first, 0_u32);
    let mut rest = table;
    while let [head, after @ ..] = rest {
        let length = after.iter().position(|byte| byte & BEGINS != 0).unwrap_or(after.len());
        let (data, next) = after.split_at(length);
        let kind = (head >> 3) & 0xF;
        let lines = match kind {
            10..=12 => i32::from(kind) - 10,
            13 | 14 => signed_number(data)?,
            _ => 0,
        };
        line = line.checked_add_signed(lines)?;
        end = end.checked_add((u32::from(head & 7) + 1) * INSTRUCTION_BYTES)?;
        if offset < end {
            return (kind != 15).then_some(line);
        }
        rest = next;
    }
    None
}

/// Returns the number at the begin of `data`: six bits a byte, the lowest first. The lowest bit of
/// the number is its sign.
fn signed_number(data: &[u8]) -> Option<i32> {
    let mut number = 0_u32;
    for (index, byte) in data.iter().enumerate().take(5) {
        number |= u32::from(byte & (MORE - 1)) << (6 * index);
        if byte & MORE == 0 {
            let size = (number >> 1).cast_signed();
            return Some(if number & 1 == 0 { size } else { -size });
        }
    }
    None
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
