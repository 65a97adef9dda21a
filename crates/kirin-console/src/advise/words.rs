//! Words and numbers of a report.

use crate::units::count;

pub(super) fn times(number: u64) -> String {
    if number == 1 { "once".into() } else { format!("{} times", count(number)) }
}

/// Returns which part of `all` is `part`, in whole percent: what memory would save is an estimate.
pub(super) fn share(part: f64, all: f64) -> String {
    if all > 0.0 { format!("{:.0} %", part / all * 100.0) } else { "0 %".into() }
}

/// Returns text that strangers have chosen, for a terminal: other bytes than visible ASCII are
/// escaped.
pub(super) fn visible(text: &str) -> String {
    let escaped = |c: char| match c {
        ' '..='~' => c.to_string(),
        _ => c.escape_unicode().to_string(),
    };
    text.chars().map(escaped).collect()
}

pub(super) fn code(text: &str) -> String {
    format!("`{}`", visible(text))
}
