//! Functions of `kirin` for text: escaping, digests, base64, URLs; random bytes.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use kirin_http::percent::{self, RESERVED};
use kirin_http::{form, html};
use mlua::{Error, Lua, LuaString, Result, Table};
use sha2::{Digest, Sha256};

use crate::allowance::{Allowance, SLICE_BYTES};

/// The most random bytes that one call gets.
const MAX_RANDOM: usize = 1024;

/// Bytes that are encoded at once. They are complete groups of three for base64.
const ENCODED_SLICE: usize = SLICE_BYTES / 3 * 3;

/// Characters of base64 that are decoded at once. They are complete groups of four.
const BASE64_SLICE: usize = SLICE_BYTES / 4 * 4;

/// The block size of SHA-256 in bytes.
const SHA256_BLOCK: usize = 64;

/// A function from one text to another, or to nil.
type OfText = fn(&Allowance, &[u8]) -> Result<Option<Vec<u8>>>;

/// Adds the functions to `kirin`.
pub(crate) fn add(lua: &Lua, kirin: &Table, allowance: &Allowance) -> Result<()> {
    let of_text = |name: &str, function: OfText| {
        let time = allowance.clone();
        let function = move |lua: &Lua, text: LuaString| match function(&time, &text.as_bytes())? {
            Some(made) => lua.create_string(made).map(Some),
            None => Ok(None),
        };
        kirin.set(name, lua.create_function(function)?)
    };
    let time = allowance.clone();
    let escape = move |lua: &Lua, text: LuaString| match escape(&time, &text.as_bytes())? {
        Some(escaped) => lua.create_string(escaped),
        None => Ok(text.clone()),
    };
    kirin.set("escape", lua.create_function(escape)?)?;
    of_text("escape_url", |time, text| escape_url(time, text).map(Some))?;
    of_text("unescape_url", |time, text| unescape_url(time, text).map(Some))?;
    of_text("sha256", |time, text| sha256(time, text).map(Some))?;
    of_text("hex", |time, text| encoded(time, text, 2, hex))?;
    of_text("base64", |time, text| encoded(time, text, 2, |slice| BASE64_STANDARD.encode(slice)))?;
    of_text("base64url", |time, text| {
        encoded(time, text, 2, |slice| BASE64_URL_SAFE_NO_PAD.encode(slice))
    })?;
    of_text("unbase64", unbase64)?;
    let time = allowance.clone();
    let hmac = move |lua: &Lua, (key, text): (LuaString, LuaString)| {
        lua.create_string(hmac_sha256(&time, &key.as_bytes(), &text.as_bytes())?)
    };
    kirin.set("hmac_sha256", lua.create_function(hmac)?)?;
    let time = allowance.clone();
    let equals =
        move |_: &Lua, (a, b): (LuaString, LuaString)| equals(&time, &a.as_bytes(), &b.as_bytes());
    kirin.set("equals", lua.create_function(equals)?)?;
    kirin.set("random", lua.create_function(random)?)
}

/// Escapes text for HTML and attribute values. Returns `None` if nothing needs escaping.
fn escape(time: &Allowance, text: &[u8]) -> Result<Option<Vec<u8>>> {
    let special = |byte: &u8| html::is_special(*byte);
    let mut first = None;
    for (index, slice) in text.chunks(SLICE_BYTES).enumerate() {
        time.spend_bytes(slice.len())?;
        first = slice.iter().position(special).map(|at| index * SLICE_BYTES + at);
        if first.is_some() {
            break;
        }
    }
    let Some(first) = first else { return Ok(None) };
    let mut out = Vec::with_capacity(text.len() + 32);
    out.extend_from_slice(&text[..first]);
    time.slices(&text[first..], |slice| {
        html::escape_into(slice, &mut out);
        time.size(out.len())
    })?;
    Ok(Some(out))
}

/// Encodes all bytes except the unreserved characters of RFC 3986 section 2.3 as `%XX`.
fn escape_url(time: &Allowance, text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    time.slices(text, |slice| {
        percent::encode_into(slice, RESERVED, &mut out);
        time.size(out.len())
    })?;
    Ok(out)
}

/// Percent-decodes `text`. Malformed encodings stay.
pub(crate) fn unescape_url(time: &Allowance, text: &[u8]) -> Result<Vec<u8>> {
    decode(time, text, percent::decode_into)
}

/// Returns a name or value of a query or form, decoded.
pub(crate) fn decode_form(time: &Allowance, text: &[u8]) -> Result<Vec<u8>> {
    decode(time, text, form::decode_into)
}

/// Decodes `text` with `decode_into`, slice by slice.
fn decode(time: &Allowance, text: &[u8], decode_into: fn(&[u8], &mut Vec<u8>)) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        // An encoded byte must not cross the end of a slice.
        let end = match rest.get(..SLICE_BYTES) {
            None => rest.len(),
            Some([.., b'%']) => SLICE_BYTES - 1,
            Some([.., b'%', _]) => SLICE_BYTES - 2,
            Some(_) => SLICE_BYTES,
        };
        let (slice, after) = rest.split_at(end);
        time.spend_bytes(slice.len())?;
        decode_into(slice, &mut out);
        rest = after;
    }
    Ok(out)
}

fn sha256(time: &Allowance, text: &[u8]) -> Result<Vec<u8>> {
    let mut digest = Sha256::new();
    time.slices(text, |slice| {
        digest.update(slice);
        Ok(())
    })?;
    Ok(digest.finalize().to_vec())
}

fn hmac_sha256(time: &Allowance, key: &[u8], text: &[u8]) -> Result<Vec<u8>> {
    // A key that is longer than a block is replaced by its digest (RFC 2104 section 2).
    let digest = if key.len() > SHA256_BLOCK { Some(sha256(time, key)?) } else { None };
    let mut mac = Hmac::<Sha256>::new_from_slice(digest.as_deref().unwrap_or(key))
        .map_err(Error::external)?;
    time.slices(text, |slice| {
        mac.update(slice);
        Ok(())
    })?;
    Ok(mac.finalize().into_bytes().to_vec())
}

/// Joins the results of `encode` for each slice. A result is at most `growth` times as long as its
/// slice.
fn encoded<T: AsRef<[u8]>>(
    time: &Allowance,
    bytes: &[u8],
    growth: usize,
    encode: impl Fn(&[u8]) -> T,
) -> Result<Option<Vec<u8>>> {
    time.size(bytes.len().saturating_mul(growth))?;
    let mut out = Vec::with_capacity(bytes.len() * growth);
    for slice in bytes.chunks(ENCODED_SLICE) {
        time.spend_bytes(slice.len())?;
        out.extend_from_slice(encode(slice).as_ref());
    }
    Ok(Some(out))
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .collect()
}

/// Decodes either alphabet. Returns `None` for text that is not base64.
fn unbase64(time: &Allowance, text: &[u8]) -> Result<Option<Vec<u8>>> {
    match decoded(time, text, &BASE64_STANDARD)? {
        Some(bytes) => Ok(Some(bytes)),
        None => decoded(time, text, &BASE64_URL_SAFE_NO_PAD),
    }
}

fn decoded(time: &Allowance, text: &[u8], engine: &impl Engine) -> Result<Option<Vec<u8>>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let count = text.len().div_ceil(BASE64_SLICE);
    for (index, slice) in text.chunks(BASE64_SLICE).enumerate() {
        time.spend_bytes(slice.len())?;
        // Padding ends the text, not a slice of it.
        let is_open = index + 1 < count && slice.ends_with(b"=");
        if is_open || engine.decode_vec(slice, &mut out).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(out))
}

/// Compares in a time that does not show where the texts differ. It shows whether their lengths
/// differ.
fn equals(time: &Allowance, a: &[u8], b: &[u8]) -> Result<bool> {
    let mut differences = 0;
    for (a, b) in a.chunks(SLICE_BYTES).zip(b.chunks(SLICE_BYTES)) {
        time.spend_bytes(a.len())?;
        differences |= a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    }
    Ok(a.len() == b.len() && std::hint::black_box(differences) == 0)
}

fn random(lua: &Lua, count: usize) -> Result<LuaString> {
    if count > MAX_RANDOM {
        return Err(Error::runtime(format!("random: at most {MAX_RANDOM} bytes")));
    }
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(Error::external)?;
    lua.create_string(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_byte_is_read_across_slices() {
        let time = Allowance::new(&crate::Limits::default());
        for before in SLICE_BYTES - 4..SLICE_BYTES + 2 {
            for tail in ["%41b", "%%41", "%%%", "%4", "+%2B", "%"] {
                let text = ["a".repeat(before).as_bytes(), tail.as_bytes()].concat();
                assert_eq!(
                    unescape_url(&time, &text).unwrap(),
                    &percent::decode(&text)[..],
                    "{tail}"
                );
                let mut form = Vec::new();
                form::decode_into(&text, &mut form);
                assert_eq!(decode_form(&time, &text).unwrap(), form, "{tail}");
            }
        }
    }
}
