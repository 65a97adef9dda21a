//! What the front parses so that an application need not: the query, a form and the cookies.
//!
//! Pure: called by [`crate::App::answer`] for requests to applications whose workers have asked for
//! it in their greeting. The results are those of the Perl modules that Plack::Request parses with
//! (WWW::Form::UrlEncoded::PP 0.26, Cookie::Baker 0.11, both without their XS companions), quirks
//! included; `adapters/perl/t/parsed_differential.t` compares them. What cannot be said in a value
//! of a header block is not sent, and the worker parses it as ever.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use kirin_cgi::RequestBlock;

/// Between the parts of a value: US, the unit separator. Perl's `split` finds a single byte faster
/// than `unpack` reads lengths (0.46 µs against 1.06 µs for five parameters), and form fields
/// hardly ever hold it.
const SEPARATOR: u8 = 0x1f;

/// Longer ones are not parsed: they would be sent two times over in a head that has a limit.
const MAX_PARSED_BYTES: usize = 8 * 1024;

/// The media type as Plack::Request compares it: at the beginning of the field, in lower case.
const FORM_TYPE: &[u8] = b"application/x-www-form-urlencoded";

/// A part that no value can hold; the whole parse is left out.
#[derive(Debug)]
struct CannotBeSaid;

/// Which parses a worker has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) query: bool,
    pub(crate) form: bool,
    pub(crate) cookies: bool,
}

impl Wanted {
    /// Reads the list of a greeting; names that are not known ask for nothing.
    pub(crate) fn from_list(list: &str) -> Self {
        let has = |name| list.split(',').any(|word| word == name);
        Self { query: has("query"), form: has("form"), cookies: has("cookies") }
    }

    fn bits(self) -> u8 {
        u8::from(self.query) | u8::from(self.form) << 1 | u8::from(self.cookies) << 2
    }

    fn from_bits(bits: u8) -> Self {
        Self { query: bits & 1 != 0, form: bits & 2 != 0, cookies: bits & 4 != 0 }
    }
}

/// What the workers of an application have asked for, all together: a head is made before it is
/// known which worker gets it, and each can do without.
#[derive(Debug, Default)]
pub(crate) struct WantedByWorkers(AtomicU8);

impl WantedByWorkers {
    pub(crate) fn get(&self) -> Wanted {
        Wanted::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// These are the workers there are now.
    pub(crate) fn set(&self, workers: impl Iterator<Item = Wanted>) {
        self.0.store(workers.fold(0, |bits, wanted| bits | wanted.bits()), Ordering::Relaxed);
    }
}

/// Adds to a request's block what can be said before its body is there.
pub(crate) fn add_to_head(block: &mut RequestBlock, query: Option<&str>, wanted: Wanted) {
    if !wanted.query && !wanted.cookies {
        return;
    }
    let cookies = block.cookies().filter(|_| wanted.cookies).map(<[u8]>::to_vec);
    block.append(|block| {
        if wanted.query {
            push_query(block, query.unwrap_or(""));
        }
        if let Some(cookies) = cookies {
            push_cookies(block, &cookies);
        }
    });
}

/// Adds the form that the body is, if it is one.
pub(crate) fn add_form(block: &mut RequestBlock, body: &[u8]) {
    let Some(content_type) = block.value("CONTENT_TYPE").map(<[u8]>::to_vec) else { return };
    block.append(|block| push_form(block, &content_type, body));
}

/// Appends `kirin.query` to a header block: the query as it was, then names and values.
fn push_query(block: &mut Vec<u8>, query: &str) {
    if !query.is_empty() {
        push_value(block, b"kirin.query", query.as_bytes(), |block| {
            push_urlencoded(block, query.as_bytes())
        });
    }
}

/// Appends `kirin.form`: the length of the body, then names and values. Nothing if the body is no
/// form.
fn push_form(block: &mut Vec<u8>, content_type: &[u8], body: &[u8]) {
    if content_type.starts_with(FORM_TYPE) && body.len() <= MAX_PARSED_BYTES {
        let mut length = itoa::Buffer::new();
        let length = length.format(body.len()).as_bytes();
        push_value(block, b"kirin.form", length, |block| push_urlencoded(block, body));
    }
}

/// Appends `kirin.cookies`: the field's value, then names and values, each name once. Nothing if
/// there is no cookie.
fn push_cookies(block: &mut Vec<u8>, field: &[u8]) {
    if memchr::memchr(b'=', field).is_some() {
        push_value(block, b"kirin.cookies", field, |block| push_cookie_pairs(block, field));
    }
}

/// Appends a name, and a value of which `first` is the first part. Takes all back if it is too long
/// or cannot be said.
fn push_value(
    block: &mut Vec<u8>,
    name: &[u8],
    first: &[u8],
    push_rest: impl FnOnce(&mut Vec<u8>) -> Result<(), CannotBeSaid>,
) {
    if first.len() > MAX_PARSED_BYTES || first.iter().any(|byte| cannot_be_said(*byte)) {
        return;
    }
    let start = block.len();
    // What was parsed, and the same again in parts.
    block.reserve(name.len() + 2 * first.len() + 64);
    block.extend_from_slice(name);
    block.push(0);
    block.extend_from_slice(first);
    match push_rest(block) {
        Ok(()) => block.push(0),
        Err(CannotBeSaid) => block.truncate(start),
    }
}

/// NUL ends a value of the header block.
fn cannot_be_said(byte: u8) -> bool {
    byte == 0 || byte == SEPARATOR
}

/// As WWW::Form::UrlEncoded::PP: pairs are separated by `&` or `;` and perhaps a space, `+` is a
/// space, and a pair without `=` has an empty value. An empty pair counts, an empty text has none.
fn push_urlencoded(block: &mut Vec<u8>, text: &[u8]) -> Result<(), CannotBeSaid> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    while let Some(text) = rest {
        let pair = match memchr::memchr2(b'&', b';', text) {
            Some(end) => {
                let after = &text[end + 1..];
                rest = Some(after.strip_prefix(b" ").unwrap_or(after));
                &text[..end]
            }
            None => {
                rest = None;
                text
            }
        };
        let (name, value) = split_at_equals(pair);
        push_decoded(block, name, true)?;
        push_decoded(block, value, true)?;
    }
    Ok(())
}

/// As Cookie::Baker::pp_crush_cookie: pairs are separated by `;` and perhaps a space, whitespace
/// around a pair is taken off, one pair of double quotes around a value too, and of cookies with
/// the same decoded name the first counts.
fn push_cookie_pairs(block: &mut Vec<u8>, field: &[u8]) -> Result<(), CannotBeSaid> {
    let mut names = Names::default();
    for (index, pair) in field.split(|byte| *byte == b';').enumerate() {
        let pair = if index == 0 { pair } else { pair.strip_prefix(b" ").unwrap_or(pair) };
        if memchr::memchr(b'=', pair).is_none() {
            continue;
        }
        let (name, value) = split_at_equals(trim(pair));
        let start = block.len();
        push_decoded(block, name, false)?;
        let decoded = start + 1..block.len();
        if !names.add(block, decoded) {
            block.truncate(start);
            continue;
        }
        let value =
            value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        push_decoded(block, value, false)?;
    }
    Ok(())
}

/// Cookies that are compared one by one: browsers send a handful. With more of them, every name
/// would be compared with every other, so a set takes over.
const FEW_COOKIES: usize = 16;

/// Decoded names of cookies.
#[derive(Default)]
struct Names {
    /// The first ones, as ranges of the block.
    few: Vec<Range<usize>>,
    /// All of them, if there are more than a few.
    many: HashSet<Vec<u8>>,
}

impl Names {
    /// Adds the name at this place of the block; false if it is there already.
    fn add(&mut self, block: &[u8], name: Range<usize>) -> bool {
        if self.few.len() < FEW_COOKIES {
            let is_new = !self.few.iter().any(|known| block[known.clone()] == block[name.clone()]);
            if is_new {
                self.few.push(name);
            }
            return is_new;
        }
        if self.many.is_empty() {
            self.many.extend(self.few.iter().map(|known| block[known.clone()].to_vec()));
        }
        !self.many.contains(&block[name.clone()]) && self.many.insert(block[name].to_vec())
    }
}

fn split_at_equals(pair: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'=', pair) {
        Some(equals) => (&pair[..equals], &pair[equals + 1..]),
        None => (pair, b""),
    }
}

/// Takes off what Perl's `\s` matches in bytes.
fn trim(mut text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b'\t'..=b'\r' | b' ');
    while let Some((_, rest)) = text.split_first().filter(|(first, _)| is_space(first)) {
        text = rest;
    }
    while let Some((_, rest)) = text.split_last().filter(|(last, _)| is_space(last)) {
        text = rest;
    }
    text
}

/// Appends the separator and `text` with its percent-encoding taken off; what is no encoding stays
/// as it is.
fn push_decoded(block: &mut Vec<u8>, text: &[u8], plus_is_space: bool) -> Result<(), CannotBeSaid> {
    block.push(SEPARATOR);
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        let byte = match (byte, bytes.as_slice()) {
            (b'%', [high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let decoded = hex_value(*high) << 4 | hex_value(*low);
                bytes.nth(1);
                decoded
            }
            (b'+', _) if plus_is_space => b' ',
            _ => byte,
        };
        if cannot_be_said(byte) {
            return Err(CannotBeSaid);
        }
        block.push(byte);
    }
    Ok(())
}

/// The value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
#[path = "parsed_tests.rs"]
mod tests;
