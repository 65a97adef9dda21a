//! The common and the combined format of Apache and nginx, with what many append.
//!
//! ```text
//! HOST IDENT USER [TIME] "METHOD TARGET PROTOCOL" STATUS BYTES "REFERER" "AGENT" PLACE SECONDS cut
//! VHOST:PORT HOST IDENT USER [TIME] …
//! ```
//!
//! Servers escape quotation marks in what a client sends, as `\x22` or `\"`. So the request is in
//! the first pair of them, whatever the user's name is.

use std::borrow::Cow;

use crate::line::error::LineError;
use crate::line::log_time::{LogTime, TimeForm};
use crate::line::number;
use crate::line::record::{LogRecord, TimeUnit};
use crate::line::unescaped::unescaped;

/// Parses a line.
pub(super) fn parse(line: &[u8], unit: TimeUnit) -> Result<LogRecord<'_>, LineError> {
    let quote = memchr::memchr(b'"', line).ok_or(LineError::NoRequest)?;
    let (before, rest) = (&line[..quote], &line[quote + 1..]);
    let end = closing_quote(rest).ok_or(LineError::NoRequest)?;
    let (method, target) = split_request_line(&rest[..end]);
    let mut words = LineWords(&rest[end + 1..]);
    let Some(LineWord::Plain(status_text)) = words.next() else {
        return Err(LineError::Missing("status"));
    };
    let number = number::unsigned(status_text).ok_or(LineError::NotANumber("the status"))?;
    let Some(LineWord::Plain(size)) = words.next() else { return Err(LineError::Missing("size")) };
    let bytes = match size {
        b"-" => None,
        _ => Some(number::unsigned(size).ok_or(LineError::NotANumber("the size"))?),
    };
    let mut record = LogRecord {
        method: Cow::Borrowed(method),
        target: unescaped(Cow::Borrowed(target)),
        status: status(number)?,
        bytes,
        micros: None,
        host: host(before).map(Cow::Borrowed),
        time: time(before).map(|text| LogTime { text: Cow::Borrowed(text), form: TimeForm::Usual }),
        place: None,
        cache: None,
        is_cut: false,
    };
    appended(&mut record, words, unit);
    Ok(record)
}

/// Reads what stands after the size: the duration is the first number, or has a label such as
/// `rt=`. The word before a duration without a label is the place.
fn appended<'a>(record: &mut LogRecord<'a>, words: LineWords<'a>, unit: TimeUnit) {
    let mut last = None;
    for word in words {
        let LineWord::Plain(text) = word else {
            last = None;
            continue;
        };
        if record.micros.is_none() {
            let (value, has_label) = match text {
                [b'r', b't', b'=', value @ ..] => (value, true),
                _ => match text.strip_prefix(b"request_time=") {
                    Some(value) => (value, true),
                    None => (text, false),
                },
            };
            record.micros = number::micros(value, unit);
            if record.micros.is_some() && !has_label {
                record.place = last.map(Cow::Borrowed);
            }
        } else if text == b"cut" {
            record.is_cut = true;
        }
        last = (text != b"-").then_some(text);
    }
}

/// Returns the host of Apache's `vhost_combined`, whose lines have `HOST:PORT` in front of the
/// three words of the other formats.
fn host(before: &[u8]) -> Option<&[u8]> {
    let (first, rest) = before.split_at(memchr::memchr(b' ', before)?);
    let (name, port) = first.split_at(memchr::memrchr(b':', first)?);
    let is_host = !name.is_empty() && (!name.contains(&b':') || name.ends_with(b"]"));
    let is_port = port.len() > 1 && port[1..].iter().all(u8::is_ascii_digit);
    // The rest begins with a space.
    let words = || rest[1..].split(|byte| *byte == b' ').take_while(|word| !word.starts_with(b"["));
    (is_host && is_port && words().count() == 3).then_some(name)
}

/// Returns the text between the last brackets before the request.
fn time(before: &[u8]) -> Option<&[u8]> {
    let end = before.iter().rposition(|byte| *byte == b']')?;
    let start = before[..end].iter().rposition(|byte| *byte == b'[')?;
    Some(&before[start + 1..end])
}

/// Splits a request line into method and target. Bytes that are not a request have the method `-`.
pub(super) fn split_request_line(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(space) = line.iter().take(32).position(|byte| *byte == b' ') else {
        return (b"-", line);
    };
    let (method, rest) = (&line[..space], &line[space + 1..]);
    if method.is_empty() || !method.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    {
        return (b"-", line);
    }
    // nginx lets spaces in a target pass.
    let target = match memchr::memrchr(b' ', rest) {
        Some(end) if rest[end + 1..].starts_with(b"HTTP/") => &rest[..end],
        _ => rest,
    };
    (method, target)
}

/// Checks a status.
pub(super) fn status(number: u64) -> Result<u16, LineError> {
    u16::try_from(number)
        .ok()
        .filter(|status| *status < 1000)
        .ok_or(LineError::NotANumber("the status"))
}

/// Returns the index of the quotation mark that ends a quoted text.
pub(super) fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
    }
}

/// The words of the rest of a line.
struct LineWords<'a>(&'a [u8]);

/// A word: quoted, or ended by a space.
enum LineWord<'a> {
    Quoted,
    Plain(&'a [u8]),
}

impl<'a> Iterator for LineWords<'a> {
    type Item = LineWord<'a>;

    fn next(&mut self) -> Option<LineWord<'a>> {
        let start = self.0.iter().position(|byte| *byte != b' ')?;
        let text = &self.0[start..];
        if text[0] == b'"' {
            let end = closing_quote(&text[1..]).map_or(text.len(), |end| end + 2);
            self.0 = &text[end..];
            return Some(LineWord::Quoted);
        }
        let end = text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
        self.0 = &text[end..];
        Some(LineWord::Plain(&text[..end]))
    }
}
