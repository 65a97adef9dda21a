//! Tables of lines as CPython has made them of one function: with a condition of two lines, 300
//! empty lines, a call of three lines whose call is in the first one, and a `finally`.

use super::*;

/// The table, and the lines of the offsets from which on they hold.
type Table = (LineFormat, &'static [u8], &'static [(u32, Option<u32>)]);

/// CPython 3.9.18.
const STEPS: Table = (
    LineFormat::Steps,
    &[
        0, 1, 4, 1, 8, 1, 2, 1, 2, 255, 4, 2, 10, 127, 0, 127, 0, 46, 2, 1, 2, 1, 2, 254, 4, 3, 2,
        1, 4, 2, 4, 254, 2, 2,
    ],
    &[
        (0, Some(2)),
        (4, Some(3)),
        (12, Some(4)),
        (14, Some(5)),
        (16, Some(4)),
        (20, Some(6)),
        (30, Some(306)),
        (32, Some(307)),
        (34, Some(308)),
        (36, Some(306)),
        (40, Some(309)),
        (42, Some(310)),
        (46, Some(312)),
        (50, Some(310)),
        (52, Some(312)),
    ],
);

/// CPython 3.10.13.
const RANGES: Table = (
    LineFormat::Ranges,
    &[
        4, 1, 8, 1, 2, 1, 2, 1, 4, 255, 8, 2, 2, 128, 0, 127, 0, 127, 2, 46, 2, 1, 2, 1, 4, 254, 2,
        3, 4, 1, 12, 2,
    ],
    &[
        (0, Some(2)),
        (4, Some(3)),
        (12, Some(4)),
        (14, Some(5)),
        (16, Some(4)),
        (20, Some(6)),
        (28, None),
        (30, Some(306)),
        (32, Some(307)),
        (34, Some(308)),
        (36, Some(306)),
        (40, Some(309)),
        (42, Some(310)),
        (46, Some(312)),
        (58, None),
    ],
);

/// CPython 3.13.0.
const LOCATIONS: Table = (
    LineFormat::Locations,
    &[
        128, 0, 216, 8, 9, 128, 65, 219, 13, 14, 136, 1, 216, 12, 13, 216, 16, 17, 245, 3, 1, 13,
        18, 224, 12, 13, 137, 70, 138, 65, 241, 7, 0, 14, 15, 244, 94, 9, 0, 5, 6, 216, 6, 7, 220,
        6, 7, 244, 5, 2, 5, 9, 240, 6, 3, 5, 14, 216, 15, 16, 224, 12, 13, 137, 1, 248, 136, 65,
        137, 1, 250,
    ],
    &[
        (0, Some(1)),
        (2, Some(2)),
        (6, Some(3)),
        (16, Some(4)),
        (18, Some(5)),
        (20, Some(4)),
        (32, Some(6)),
        (44, Some(3)),
        (48, Some(306)),
        (58, Some(307)),
        (60, Some(308)),
        (70, Some(306)),
        (80, Some(309)),
        (82, Some(310)),
        (84, Some(312)),
        (90, None),
        (92, Some(312)),
        (98, None),
    ],
);

#[test]
fn each_instruction_has_the_line_that_python_says() {
    for (format, table, expected) in [STEPS, RANGES, LOCATIONS] {
        let end = expected.last().unwrap().0 + 2;
        for offset in (0..end).step_by(2) {
            let line = expected.iter().rev().find(|(from, _)| *from <= offset).unwrap().1;
            assert_eq!(super::line(format, table, 1, offset), line, "{format:?} {offset}");
        }
    }
}

#[test]
fn a_line_without_columns_may_be_far_away() {
    // One instruction each: 1000 lines on, and 1000 lines back.
    let table = [0xE8, 0x50, 0x1F, 0xE8, 0x51, 0x1F];
    assert_eq!(line(LineFormat::Locations, &table, 7, 0), Some(1007));
    assert_eq!(line(LineFormat::Locations, &table, 7, 2), Some(7));
}

#[test]
fn what_is_no_table_has_no_lines() {
    for format in [LineFormat::Ranges, LineFormat::Locations] {
        assert_eq!(line(format, &[], 1, 0), None);
        assert_eq!(line(format, &[3], 1, 1000), None);
    }
    assert_eq!(line(LineFormat::Steps, &[], 1, 0), Some(1));
    // Lines below zero, and a number that does not end.
    assert_eq!(line(LineFormat::Steps, &[0, 255, 0, 255], 1, 0), None);
    assert_eq!(line(LineFormat::Ranges, &[2, 129], 1, 0), None);
    assert_eq!(line(LineFormat::Locations, &[0xE8, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 1], 1, 0), None);
    assert_eq!(line(LineFormat::Locations, &[0xE8, 0x7F], 1, 0), None);
}
