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
use kirin_http::media_type::is_form_like_plack;
use kirin_http::{cookies, form, percent};

/// Between the parts of a value: US, the unit separator. Perl's `split` finds a single byte faster
/// than `unpack` reads lengths (0.46 µs against 1.06 µs for five parameters), and form fields
/// hardly ever hold it.
const SEPARATOR: u8 = 0x1f;

/// Longer ones are not parsed: they would be sent two times over in a head that has a limit.
const MAX_PARSED_BYTES: usize = 8 * 1024;

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
    if is_form_like_plack(content_type) && body.len() <= MAX_PARSED_BYTES {
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

/// Appends the pairs as WWW::Form::UrlEncoded::PP finds them.
fn push_urlencoded(block: &mut Vec<u8>, text: &[u8]) -> Result<(), CannotBeSaid> {
    for pair in form::pairs_like_plack(text) {
        let (name, value) = form::name_and_value(pair);
        push_decoded(block, name, form::decode_into)?;
        push_decoded(block, value, form::decode_into)?;
    }
    Ok(())
}

/// Appends the cookies as Cookie::Baker::pp_crush_cookie finds them: of cookies with the same
/// decoded name the first counts. Perl's `\s` around a pair also matches characters that no field
/// value has.
fn push_cookie_pairs(block: &mut Vec<u8>, field: &[u8]) -> Result<(), CannotBeSaid> {
    let mut names = Names::default();
    for (name, value) in cookies::pairs(field) {
        let start = block.len();
        push_decoded(block, name, percent::decode_into)?;
        let decoded = start + 1..block.len();
        if !names.add(block, decoded) {
            block.truncate(start);
            continue;
        }
        push_decoded(block, cookies::unquoted(value), percent::decode_into)?;
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

/// Appends the separator and `text` as `decode_into` decodes it.
fn push_decoded(
    block: &mut Vec<u8>,
    text: &[u8],
    decode_into: fn(&[u8], &mut Vec<u8>),
) -> Result<(), CannotBeSaid> {
    block.push(SEPARATOR);
    let start = block.len();
    decode_into(text, block);
    if block[start..].iter().any(|byte| cannot_be_said(*byte)) { Err(CannotBeSaid) } else { Ok(()) }
}

#[cfg(test)]
#[path = "parsed_tests.rs"]
mod tests;
