//! Labelled tab-separated values (ltsv.org).

use std::borrow::Cow;

use crate::line::draft::{Draft, LabelMeaning, LabelledValue};
use crate::line::error::LineError;
use crate::line::record::{LogRecord, TimeUnit};

/// Splits a field into its label and its value.
pub(super) fn split_label(field: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = field.iter().position(|byte| !is_label_byte(*byte))?;
    (end > 0 && field[end] == b':').then(|| (&field[..end], &field[end + 1..]))
}

fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'@')
}

/// Parses a line. Fields without a label are ignored.
pub(super) fn parse(line: &[u8], unit: TimeUnit) -> Result<LogRecord<'_>, LineError> {
    let mut draft = Draft::new(unit, true);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\t', line).chain(std::iter::once(line.len())) {
        let field = &line[start..end];
        start = end + 1;
        let Some((label, value)) = split_label(field) else { continue };
        if let Some(key) = LabelMeaning::of(label) {
            draft.set(key, LabelledValue::Text(Cow::Borrowed(value)))?;
        }
    }
    draft.finish()
}
