//! Lines in a format of the configuration, which is written in directives as Apache's LogFormat.
//!
//! A value ends where the text behind it begins. Kirin escapes quotation marks and control
//! characters in values, so that text with one of these never stands in a value. Other text, such
//! as a space behind a request line, may. One value of a format may be so: the values behind it are
//! read from the end of the line.

use std::borrow::Cow;

use crate::line::draft::{Draft, LabelMeaning, LabelledValue};
use crate::line::error::LineError;
use crate::line::number;
use crate::line::record::{LogRecord, TimeUnit};

/// A compiled format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineTemplate {
    pieces: Vec<TemplatePiece>,
    end: Vec<u8>,
    /// The index of the piece whose value may contain the text behind it.
    open: Option<usize>,
}

/// Why lines of a format cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// It has no status, or nothing of the request.
    #[error("the format has no {0}")]
    Missing(&'static str),
    /// The end of a value cannot be found.
    #[error("the end of `{0}` cannot be found: write it between quotation marks or tabs")]
    Ambiguous(String),
    /// The format ends within a directive.
    #[error("the format ends within `{0}`")]
    Unfinished(String),
}

/// A text and the value behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TemplatePiece {
    before: Vec<u8>,
    meaning: Meaning,
    characters: Characters,
    /// The directive, for messages.
    directive: String,
}

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The same as the value with this label in LTSV.
    Labelled(LabelMeaning),
    /// A duration in milliseconds.
    Milliseconds(LabelMeaning),
    /// The query of the path before it.
    Query,
    /// Nothing that is summed up.
    Unused,
}

/// The characters that a value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Characters {
    /// Digits, `.` and `-`.
    Number,
    /// Letters, digits, and the punctuation of addresses, names of places and times.
    Token,
    /// The same, and spaces.
    Tokens,
    /// All that is printed, but no space and no quotation mark.
    Word,
    /// The same, and spaces.
    Text,
    /// A time in brackets.
    Bracketed,
}

impl Characters {
    /// Returns whether a value may contain `text`.
    fn may_contain(self, text: &[u8]) -> bool {
        text.iter().all(|byte| match self {
            Self::Number => byte.is_ascii_digit() || matches!(byte, b'.' | b'-'),
            Self::Token => is_of_token(*byte),
            Self::Tokens => is_of_token(*byte) || *byte == b' ',
            Self::Word => byte.is_ascii_graphic() && *byte != b'"',
            Self::Text => matches!(byte, b' '..=b'~') && *byte != b'"',
            Self::Bracketed => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'[' | b'/' | b':' | b' ' | b'+')
            }
        })
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.:/+".contains(&byte)
}

impl LineTemplate {
    /// Compiles a format.
    pub fn parse(format: &str) -> Result<Self, TemplateError> {
        let (mut pieces, mut text) = (Vec::<TemplatePiece>::new(), Vec::new());
        let mut rest = format;
        while let Some((before, behind)) = rest.split_once('%') {
            text.extend_from_slice(before.as_bytes());
            let (directive, after) = split_directive(behind)
                .ok_or_else(|| TemplateError::Unfinished(format!("%{behind}")))?;
            rest = after;
            match directive {
                "%" => text.push(b'%'),
                "l" => text.push(b'-'),
                _ => {
                    let (meaning, characters) = meaning(directive);
                    let directive = format!("%{directive}");
                    let before = std::mem::take(&mut text);
                    pieces.push(TemplatePiece { before, meaning, characters, directive });
                }
            }
        }
        text.extend_from_slice(rest.as_bytes());
        let pieces = with_query(pieces);
        let open = open_piece(&pieces, &text)?;
        let has = |label: &[u8]| {
            let key = LabelMeaning::of(label);
            pieces.iter().any(|piece| match (piece.meaning, key) {
                (Meaning::Labelled(found), Some(key)) => found.field == key.field,
                _ => false,
            })
        };
        if !has(b"status") {
            return Err(TemplateError::Missing("status (%s)"));
        }
        if !has(b"uri") && !has(b"request") {
            return Err(TemplateError::Missing("request (%r, %U or %{uri}k)"));
        }
        Ok(Self { pieces, end: text, open })
    }

    /// Parses a line.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Result<LogRecord<'a>, LineError> {
        let mut draft = Draft::new(TimeUnit::Seconds);
        let open = self.open.unwrap_or(self.pieces.len());
        let mut rest = line;
        for (index, piece) in self.pieces.iter().enumerate().take(open) {
            rest = rest.strip_prefix(&piece.before[..]).ok_or(LineError::OtherFormat)?;
            let next = self.behind(index);
            let is_last = index + 1 == self.pieces.len();
            let end = match (next, piece.characters) {
                ([], _) if is_last => Some(rest.len()),
                (next, Characters::Bracketed) => memchr::memchr(b']', rest)
                    .map(|at| at + 1)
                    .filter(|at| rest[*at..].starts_with(next))
                    .or_else(|| memchr::memmem::find(rest, next)),
                (next, _) => memchr::memmem::find(rest, next),
            };
            let end = end.ok_or(LineError::OtherFormat)?;
            set(&mut draft, piece.meaning, &rest[..end])?;
            rest = &rest[end..];
        }
        rest = rest.strip_suffix(&self.end[..]).ok_or(LineError::OtherFormat)?;
        for piece in self.pieces.iter().skip(open + 1).rev() {
            let at = memchr::memmem::rfind(rest, &piece.before).ok_or(LineError::OtherFormat)?;
            set(&mut draft, piece.meaning, &rest[at + piece.before.len()..])?;
            rest = &rest[..at];
        }
        match self.pieces.get(open) {
            Some(piece) => {
                let value = rest.strip_prefix(&piece.before[..]).ok_or(LineError::OtherFormat)?;
                set(&mut draft, piece.meaning, value)?;
            }
            None if rest.is_empty() => {}
            None => return Err(LineError::OtherFormat),
        }
        draft.finish()
    }

    /// Returns the text behind a piece.
    fn behind(&self, index: usize) -> &[u8] {
        self.pieces.get(index + 1).map_or(&self.end, |next| &next.before)
    }
}

/// Splits the text behind a `%` into the directive and the rest.
fn split_directive(text: &str) -> Option<(&str, &str)> {
    let start = match text.strip_prefix('{') {
        Some(named) => named.find('}')? + 2,
        None if text.starts_with(['<', '>']) => 1,
        None => 0,
    };
    let letter = text[start..].chars().next()?;
    Some(text.split_at(start + letter.len_utf8()))
}

/// Returns what the value of a directive says, and its characters.
fn meaning(directive: &str) -> (Meaning, Characters) {
    use Characters::{Bracketed, Number, Text, Token, Word};
    let label: &[u8] = match directive.trim_start_matches(['<', '>']) {
        "r" => b"request",
        "m" => b"method",
        "U" => b"path",
        "{uri}k" => b"uri",
        "q" => return (Meaning::Query, Word),
        "s" => b"status",
        "b" | "B" => b"size",
        "D" | "{us}T" => b"reqtime_microsec",
        "{reqtime}k" => b"reqtime",
        "{ms}T" => {
            let key = LabelMeaning::of(b"reqtime_microsec");
            return (key.map_or(Meaning::Unused, Meaning::Milliseconds), Number);
        }
        "T" | "{s}T" => b"runtime",
        "t" => b"time",
        "{place}k" | "{answered_by}k" => b"place",
        "{cache}k" => b"cache",
        "{end}k" => b"end",
        "h" | "a" | "{c}a" | "H" => return (Meaning::Unused, Token),
        "v" | "V" | "{vhost}k" => b"vhost",
        "u" => b"",
        "p" | "P" | "{local}p" | "{canonical}p" => return (Meaning::Unused, Number),
        other if other.eq_ignore_ascii_case("{host}i") => {
            let key = LabelMeaning::of(b"vhost").map_or(Meaning::Unused, Meaning::Labelled);
            return (key, Text);
        }
        other if other.ends_with('t') => {
            let key = LabelMeaning::of(b"time").map_or(Meaning::Unused, Meaning::Labelled);
            return (key, characters_of_time(other));
        }
        other if other.ends_with('k') => b"",
        _ => return (Meaning::Unused, Text),
    };
    let characters = match label {
        b"status" | b"size" | b"reqtime_microsec" | b"reqtime" | b"runtime" => Number,
        b"time" => Bracketed,
        b"method" | b"place" | b"cache" | b"end" => Token,
        b"request" => Text,
        _ => Word,
    };
    (LabelMeaning::of(label).map_or(Meaning::Unused, Meaning::Labelled), characters)
}

/// Returns the characters of a time in the format of `directive`, `{FORMAT}t`.
fn characters_of_time(directive: &str) -> Characters {
    let format = directive.trim_start_matches('{').trim_end_matches("}t");
    let format = format.strip_prefix("begin:").or(format.strip_prefix("end:")).unwrap_or(format);
    let has_spaces = [" ", "%c", "%e", "%k", "%l", "%n", "%r", "%t", "%v", "%+"];
    let is_usual = format.bytes().all(|byte| is_of_token(byte) || matches!(byte, b'%' | b' '));
    if ["sec", "msec", "usec", "msec_frac", "usec_frac"].contains(&format) {
        return Characters::Number;
    }
    match (is_usual, has_spaces.iter().any(|text| format.contains(text))) {
        (true, false) => Characters::Token,
        (true, true) => Characters::Tokens,
        (false, false) => Characters::Word,
        (false, true) => Characters::Text,
    }
}

/// Joins `%U` and a `%q` directly behind it to one target.
fn with_query(pieces: Vec<TemplatePiece>) -> Vec<TemplatePiece> {
    let mut joined = Vec::<TemplatePiece>::new();
    for piece in pieces {
        let path = LabelMeaning::of(b"path").map(Meaning::Labelled);
        match joined.last_mut() {
            Some(last)
                if piece.meaning == Meaning::Query
                    && piece.before.is_empty()
                    && Some(last.meaning) == path =>
            {
                last.directive.push_str(&piece.directive);
            }
            _ => joined.push(piece),
        }
    }
    joined
}

/// Returns the index of the piece whose value may contain the text behind it. No second one may be
/// so, and the values behind it must not contain the text before them.
fn open_piece(pieces: &[TemplatePiece], end: &[u8]) -> Result<Option<usize>, TemplateError> {
    let mut open = None;
    for (index, piece) in pieces.iter().enumerate() {
        let is_last = index + 1 == pieces.len();
        let behind = pieces.get(index + 1).map_or(end, |next| &next.before);
        let is_open = match (open, behind) {
            (None, []) => !is_last,
            // Its bracket ends it.
            (None, _) if piece.characters == Characters::Bracketed => false,
            (None, behind) => piece.characters.may_contain(behind),
            // Read from the end of the line.
            (Some(_), _) => piece.characters.may_contain(&piece.before),
        };
        match (open, is_open) {
            (None, true) => open = Some(index),
            (Some(_), true) => return Err(TemplateError::Ambiguous(piece.directive.clone())),
            (_, false) => {}
        }
    }
    Ok(open)
}

/// Takes the value of a piece.
fn set<'a>(draft: &mut Draft<'a>, meaning: Meaning, value: &'a [u8]) -> Result<(), LineError> {
    match meaning {
        Meaning::Labelled(key) => draft.set(key, LabelledValue::Text(Cow::Borrowed(value))),
        Meaning::Milliseconds(key) => match number::micros(value, TimeUnit::Milliseconds) {
            Some(micros) => draft.set(key, LabelledValue::Integer(micros)),
            None => Err(LineError::NotANumber("the duration of the request")),
        },
        Meaning::Query | Meaning::Unused => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str, line: &str) -> (String, String, u16, Option<u64>) {
        let template =
            LineTemplate::parse(format).unwrap_or_else(|error| panic!("{format}: {error}"));
        let record =
            template.read(line.as_bytes()).unwrap_or_else(|error| panic!("{line}: {error}"));
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        (text(&record.method), text(&record.target), record.status, record.micros)
    }

    #[test]
    fn lines_of_any_format_of_the_configuration_are_read() {
        for (format, line, expected) in [
            ("%s %U%q %D", "200 /a?b=c 1500", ("-", "/a?b=c", 200, Some(1500))),
            (
                "%h %r %>s %{reqtime}k",
                "::1 GET /a HTTP/1.1 404 0.25",
                ("GET", "/a", 404, Some(250_000)),
            ),
            (
                "%t \"%r\" %s",
                "[06/Nov/1994:08:49:37 +0000] \"GET /a HTTP/1.1\" 200",
                ("GET", "/a", 200, None),
            ),
            ("%m|%{uri}k|%s|%{ms}T", "POST|/a?b|201|3", ("POST", "/a?b", 201, Some(3000))),
            (
                "%{%Y-%m-%d %T}t %m %{uri}k %s %T",
                "2026-11-25 04:00:00 GET /a 200 2",
                ("GET", "/a", 200, Some(2_000_000)),
            ),
            (
                "[%s] %U \"%{User-Agent}i\" 100%%",
                "[200] /a \"a b\\x22\" 100%",
                ("-", "/a", 200, None),
            ),
            (
                "%{%Y-%m-%d %T}t|%s|%{place}k|%r",
                "2026-11-25 04:00:00|200|files|GET /|",
                ("GET", "/|", 200, None),
            ),
            ("%s\t%{X}i\t%U", "200\tx y\t/a", ("-", "/a", 200, None)),
        ] {
            let (method, target, status, micros) = read(format, line);
            assert_eq!((&*method, &*target, status, micros), expected, "{format}");
        }
    }

    #[test]
    fn formats_whose_lines_have_two_readings_are_refused() {
        for (format, expected) in [
            ("%U", "no status"),
            ("%s", "no request"),
            ("%r %{A}i %s", "the end of `%{A}i`"),
            ("%s%D %U", "the end of `%D`"),
            ("%s %", "ends within"),
            ("%s %{A", "ends within"),
        ] {
            let error = LineTemplate::parse(format).expect_err(format).to_string();
            assert!(error.contains(expected), "{format}: {error}");
        }
    }

    #[test]
    fn a_line_of_another_format_is_malformed() {
        let template = LineTemplate::parse("<%s> %U").unwrap();
        for line in ["", "200 /a", "<200>/a", "<x> /a", "<200"] {
            assert!(template.read(line.as_bytes()).is_err(), "{line}");
        }
    }
}
