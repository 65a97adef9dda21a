//! The parts of a request that Kirin parses for an application: the query, a form and the cookies.
//!
//! This is done for applications whose workers have asked for it in their greeting. No I/O.
//!
//! The results are those of the Perl modules with which Plack::Request parses:
//! WWW::Form::UrlEncoded::PP 0.26 and Cookie::Baker 0.11, both without their XS companions, with
//! all their peculiarities. `adapters/perl/t/parsed_differential.t` compares them. What does not
//! fit into a value of a header block is not sent, and the worker parses it as usual.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use kirin_cgi::RequestBlock;
use kirin_http::media_type::is_form_like_plack;
use kirin_http::{cookies, form, percent};

/// Separates the parts of a value: US, the unit separator. Perl's `split` finds a single byte
/// faster than `unpack` reads lengths: 0.46 µs against 1.06 µs for five parameters. Form fields
/// rarely contain it.
const SEPARATOR: u8 = 0x1f;

/// Longer texts are not parsed. They would be sent twice in a head whose length is limited.
const MAX_PARSED_BYTES: usize = 8 * 1024;

/// A part that no value can hold. Then nothing that was parsed is sent.
#[derive(Debug)]
struct Unsendable;

/// The parts that a worker has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) query: bool,
    pub(crate) form: bool,
    pub(crate) cookies: bool,
}

impl Wanted {
    /// Parses the list of a greeting. Unknown names are ignored.
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

/// The parts that any worker of an application has asked for. A head is encoded before its worker
/// is known, and a worker can ignore the parts.
#[derive(Debug, Default)]
pub(crate) struct WantedByWorkers(AtomicU8);

impl WantedByWorkers {
    pub(crate) fn get(&self) -> Wanted {
        Wanted::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Sets the parts from what the present workers have asked for.
    pub(crate) fn set(&self, workers: impl Iterator<Item = Wanted>) {
        self.0.store(workers.fold(0, |bits, wanted| bits | wanted.bits()), Ordering::Relaxed);
    }
}

/// Adds the parts that do not depend on the body to a request's block.
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

/// Adds the form, if the body is one.
pub(crate) fn add_form(block: &mut RequestBlock, body: &[u8]) {
    let Some(content_type) = block.value("CONTENT_TYPE").map(<[u8]>::to_vec) else { return };
    block.append(|block| push_form(block, &content_type, body));
}

/// Appends `kirin.query` to a header block: the original query, then names and values.
fn push_query(block: &mut Vec<u8>, query: &str) {
    if !query.is_empty() {
        push_value(block, b"kirin.query", query.as_bytes(), |block| {
            push_urlencoded(block, query.as_bytes())
        });
    }
}

/// Appends `kirin.form`: the length of the body, then names and values. Appends nothing if the body
/// is not a form.
fn push_form(block: &mut Vec<u8>, content_type: &[u8], body: &[u8]) {
    if is_form_like_plack(content_type) && body.len() <= MAX_PARSED_BYTES {
        let mut length = itoa::Buffer::new();
        let length = length.format(body.len()).as_bytes();
        push_value(block, b"kirin.form", length, |block| push_urlencoded(block, body));
    }
}

/// Appends `kirin.cookies`: the value of the field, then names and values, each name once. Appends
/// nothing if there is no cookie.
fn push_cookies(block: &mut Vec<u8>, field: &[u8]) {
    if memchr::memchr(b'=', field).is_some() {
        push_value(block, b"kirin.cookies", field, |block| push_cookie_pairs(block, field));
    }
}

/// Appends a name, and a value that starts with `first`. Removes both again if the value is too
/// long or cannot be sent.
fn push_value(
    block: &mut Vec<u8>,
    name: &[u8],
    first: &[u8],
    push_rest: impl FnOnce(&mut Vec<u8>) -> Result<(), Unsendable>,
) {
    if first.len() > MAX_PARSED_BYTES || first.iter().any(|byte| is_unsendable(*byte)) {
        return;
    }
    let start = block.len();
    // The value contains the original text, and the same again in parts.
    block.reserve(name.len() + 2 * first.len() + 64);
    block.extend_from_slice(name);
    block.push(0);
    block.extend_from_slice(first);
    match push_rest(block) {
        Ok(()) => block.push(0),
        Err(Unsendable) => block.truncate(start),
    }
}

/// Returns whether a part must not contain this byte. NUL ends a value of the header block.
fn is_unsendable(byte: u8) -> bool {
    byte == 0 || byte == SEPARATOR
}

/// Appends the pairs as WWW::Form::UrlEncoded::PP finds them.
fn push_urlencoded(block: &mut Vec<u8>, text: &[u8]) -> Result<(), Unsendable> {
    for pair in form::pairs_like_plack(text) {
        let (name, value) = form::name_and_value(pair);
        push_part(block, form::decoded(name))?;
        push_part(block, form::decoded(value))?;
    }
    Ok(())
}

/// Appends the cookies as Cookie::Baker::pp_crush_cookie finds them. Of cookies with the same
/// decoded name the first one counts. Perl's `\s` around a pair also matches characters that no
/// field value has.
fn push_cookie_pairs(block: &mut Vec<u8>, field: &[u8]) -> Result<(), Unsendable> {
    let mut names = Names::default();
    for (name, value) in cookies::pairs(field) {
        let start = block.len();
        push_part(block, percent::decoded(name))?;
        let decoded = start + 1..block.len();
        if !names.add(block, decoded) {
            block.truncate(start);
            continue;
        }
        push_part(block, percent::decoded(cookies::unquoted(value)))?;
    }
    Ok(())
}

/// The most cookies that are compared one by one. Browsers send a handful. With more cookies, a set
/// is faster than comparing every name with every other.
const FEW_COOKIES: usize = 16;

/// Decoded names of cookies.
#[derive(Default)]
struct Names {
    /// The first names, as ranges of the block.
    few: Vec<Range<usize>>,
    /// All names, if there are more than a few.
    many: HashSet<Vec<u8>>,
}

impl Names {
    /// Adds the name in this range of the block. Returns false if it was added before.
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

/// Appends the separator and the bytes of a decoded part.
fn push_part(block: &mut Vec<u8>, part: impl Iterator<Item = u8>) -> Result<(), Unsendable> {
    block.push(SEPARATOR);
    for byte in part {
        if is_unsendable(byte) {
            return Err(Unsendable);
        }
        block.push(byte);
    }
    Ok(())
}

#[cfg(test)]
#[path = "parsed_tests.rs"]
mod tests;
