//! The characters that a value of a line may have, and how its end or its start is found.
//!
//! A value ends where the text behind it begins. That is certain if the value cannot contain this
//! text. Servers escape quotation marks and control characters in values, so a value in quotation
//! marks or between tabs always has an end. Times and lists have spaces at known places.

use crate::line::combined::closing_quote;
use crate::line::log_time::TimeValue;

/// The characters that a value may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueShape {
    /// Digits, `.` and `-`.
    Number,
    /// Letters, digits, and the punctuation of addresses, names of places and times.
    Token,
    /// All that is printed, but no space and no quotation mark.
    Word,
    /// A word of Kirin and of nearly all requests. Other servers write spaces that a client sends.
    LenientWord,
    /// All that is printed, but no quotation mark.
    Text,
    /// Tokens with `, ` or ` : ` between them: a value for each server that nginx asked.
    List,
    /// A time. Its punctuation is that of the sample.
    Time { sample: String, is_regular: bool },
}

/// How the text behind or before a value is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextSearch {
    /// The nearest one.
    Nearest,
    /// The nearest one whose quotation mark has no backslash before it.
    UnescapedQuote,
    /// The value contains the text this many times.
    Skip(usize),
    /// The nearest space that does not separate the items of a list.
    EndOfList,
}

impl ValueShape {
    /// Returns the shape of a time.
    pub(super) fn of_time(time: &TimeValue) -> Self {
        if time.sample.is_empty() {
            return Self::Text;
        }
        Self::Time { sample: time.sample.clone(), is_regular: time.is_regular }
    }

    /// Returns whether a value may contain `text`.
    pub(super) fn may_contain(&self, text: &[u8]) -> bool {
        text.iter().all(|byte| match self {
            Self::Number => byte.is_ascii_digit() || matches!(byte, b'.' | b'-'),
            Self::Token => is_of_token(*byte),
            Self::Word | Self::LenientWord => byte.is_ascii_graphic() && *byte != b'"',
            Self::Text => matches!(byte, b' '..=b'~') && *byte != b'"',
            Self::List => is_of_token(*byte) || matches!(byte, b' ' | b',' | b'[' | b']'),
            Self::Time { sample, is_regular } => {
                byte.is_ascii_alphanumeric()
                    || sample.as_bytes().contains(byte)
                    || (*byte == b' ' && !is_regular)
            }
        })
    }

    /// Returns how the text `behind` a value is found, if it can be. `before` is the text before
    /// the value.
    pub(super) fn end_search(&self, before: &[u8], behind: &[u8]) -> Option<TextSearch> {
        self.search(before, behind, behind, |sample| {
            let line = [sample, behind].concat();
            (0..=sample.len())
                .map(TextSearch::Skip)
                .find(|search| search.end(&line, behind) == Some(sample.len()))
        })
    }

    /// Returns how the text `before` a value is found from the end of the line, if it can be.
    pub(super) fn start_search(&self, before: &[u8], behind: &[u8]) -> Option<TextSearch> {
        self.search(before, behind, before, |sample| {
            let line = [before, sample].concat();
            (0..=sample.len())
                .map(TextSearch::Skip)
                .find(|search| search.start(&line, before) == Some(0))
        })
    }

    fn search(
        &self,
        before: &[u8],
        behind: &[u8],
        text: &[u8],
        skip: impl Fn(&[u8]) -> Option<TextSearch>,
    ) -> Option<TextSearch> {
        if text.is_empty() {
            return None;
        }
        let is_punctuation = !text.iter().any(u8::is_ascii_alphanumeric);
        match self {
            // Its parts may stand in quotation marks of their own.
            Self::Time { sample, is_regular: true } if is_punctuation => {
                return skip(sample.as_bytes());
            }
            Self::Time { sample, .. } if sample.contains('"') => {}
            _ if before.ends_with(b"\"") && behind.starts_with(b"\"") => {
                return Some(TextSearch::UnescapedQuote);
            }
            Self::List if text == b" " => return Some(TextSearch::EndOfList),
            _ => {}
        }
        (!self.may_contain(text)).then_some(TextSearch::Nearest)
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.:/+".contains(&byte)
}

impl TextSearch {
    /// Returns the length of the value at the start of `line`, which ends before `behind`.
    pub(super) fn end(self, line: &[u8], behind: &[u8]) -> Option<usize> {
        match self {
            // A searcher for longer texts takes a while to build, and most are one byte.
            Self::Nearest => match behind {
                [byte] => memchr::memchr(*byte, line),
                _ => memchr::memmem::find(line, behind),
            },
            Self::UnescapedQuote => {
                closing_quote(line).filter(|end| line[*end..].starts_with(behind))
            }
            // A condition such as `%!200t` may have left the value out.
            Self::Skip(_) if is_dash_before(line, behind) => Some(1),
            Self::Skip(count) => memchr::memmem::find_iter(line, behind).nth(count),
            Self::EndOfList => {
                memchr::memchr_iter(b' ', line).find(|at| !is_separator_of_list(line, *at))
            }
        }
    }

    /// Returns the index of the last `before` in `line`, behind which the value stands.
    pub(super) fn start(self, line: &[u8], before: &[u8]) -> Option<usize> {
        let candidates = || memchr::memmem::rfind_iter(line, before);
        match self {
            Self::Nearest => match before {
                [byte] => memchr::memrchr(*byte, line),
                _ => memchr::memmem::rfind(line, before),
            },
            Self::UnescapedQuote => candidates().find(|at| {
                let quote = at + before.len() - 1;
                line[..quote].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
            }),
            Self::Skip(count) => {
                let dash = line.strip_suffix(b"-").filter(|line| line.ends_with(before));
                match dash {
                    Some(line) => Some(line.len() - before.len()),
                    None => candidates().nth(count),
                }
            }
            Self::EndOfList => candidates().find(|at| !is_separator_of_list(line, *at)),
        }
    }
}

fn is_dash_before(line: &[u8], behind: &[u8]) -> bool {
    line.strip_prefix(b"-").is_some_and(|line| line.starts_with(behind))
}

/// Returns whether the space at `at` is a part of `, ` or ` : `.
fn is_separator_of_list(line: &[u8], at: usize) -> bool {
    let (before, behind) = (&line[..at], &line[at..]);
    before.ends_with(b",") || before.ends_with(b" :") || behind.starts_with(b" : ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_and_the_start_of_a_value_are_found() {
        let time = |name| ValueShape::of_time(&TimeValue::named(name));
        for (shape, before, value, behind) in [
            (ValueShape::Number, "", "12", " "),
            (ValueShape::Token, " ", "::1", " - "),
            (ValueShape::Text, "\"", "a \\\" b", "\" "),
            (ValueShape::Text, " \"", "a \\\\", "\""),
            (ValueShape::Text, "\t", "a: \" b", "\t"),
            (ValueShape::List, " ", "0.1, 0.2 : 0.3", " "),
            (ValueShape::List, "=", "-", " "),
            (ValueShape::List, "<", "0.1, -", ">"),
            (time("%Y-%m-%d %T"), " ", "2026-11-22 18:40:01", " "),
            (time("%Y-%m-%d %T"), " ", "-", " "),
            (time("%H:%M:"), ":", "18:40:", ":"),
            (ValueShape::of_time(&TimeValue::common()), " ", "[22/Nov/2026:18:40:01 +0000]", " "),
        ] {
            let (before, behind) = (before.as_bytes(), behind.as_bytes());
            if let Some(search) = shape.end_search(before, behind) {
                let line = [value.as_bytes(), behind, b"5 6", behind, b"7"].concat();
                assert_eq!(search.end(&line, behind), Some(value.len()), "{shape:?} {value}");
            } else {
                panic!("{shape:?} has no end");
            }
            if before.is_empty() {
                continue;
            }
            let search = shape.start_search(before, behind).expect("a start");
            let line = [b"7", before, b"5", before, value.as_bytes()].concat();
            let expected = line.len() - value.len() - before.len();
            assert_eq!(search.start(&line, before), Some(expected), "{shape:?} {value}");
        }
    }

    #[test]
    fn a_value_that_may_contain_the_text_behind_it_has_no_end() {
        let time = |name| ValueShape::of_time(&TimeValue::named(name));
        for (shape, behind) in [
            (ValueShape::Number, ""),
            (ValueShape::Number, "."),
            (ValueShape::Word, "|"),
            (ValueShape::Text, " - "),
            (ValueShape::List, ", "),
            (ValueShape::List, " : "),
            (time("%e"), " "),
            (time("%Y"), "a"),
        ] {
            assert_eq!(shape.end_search(b"", behind.as_bytes()), None, "{shape:?} {behind}");
        }
    }
}
