//! Functions of `kirin` on text: escaping, digests, base64, URLs; random bytes.

use crate::allowance::Allowance;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use mlua::{Error, Lua, LuaString, Result, Table};
use sha2::{Digest, Sha256};

/// Random bytes at most that one call gets.
const MAX_RANDOM: usize = 1024;

/// Text that takes longer than a look at the clock.
const LONG_BYTES: usize = 64 * 1024;

/// Adds the functions to `kirin`.
pub(crate) fn add(lua: &Lua, kirin: &Table, allowance: &Allowance) -> Result<()> {
    let of_text = |name: &str, function: fn(&Lua, LuaString) -> Result<Option<LuaString>>| {
        let time = allowance.clone();
        let timed = move |lua: &Lua, text: LuaString| {
            // To the hook it is one instruction, however long the text is.
            if text.as_bytes().len() > LONG_BYTES {
                time.check()?;
            }
            function(lua, text)
        };
        kirin.set(name, lua.create_function(timed)?)
    };
    of_text("escape", |lua, text| escape(lua, text).map(Some))?;
    of_text("escape_url", |lua, text| lua.create_string(escape_url(&text.as_bytes())).map(Some))?;
    of_text("unescape_url", |lua, text| lua.create_string(unescape_url(&text.as_bytes(), false)).map(Some))?;
    of_text("sha256", |lua, text| lua.create_string(Sha256::digest(&*text.as_bytes())).map(Some))?;
    of_text("hex", |lua, bytes| lua.create_string(hex(&bytes.as_bytes())).map(Some))?;
    of_text("base64", |lua, bytes| lua.create_string(BASE64_STANDARD.encode(&*bytes.as_bytes())).map(Some))?;
    of_text("base64url", |lua, bytes| {
        lua.create_string(BASE64_URL_SAFE_NO_PAD.encode(&*bytes.as_bytes())).map(Some)
    })?;
    of_text("unbase64", unbase64)?;
    kirin.set("hmac_sha256", lua.create_function(hmac_sha256)?)?;
    kirin.set(
        "equals",
        lua.create_function(|_, (a, b): (LuaString, LuaString)| Ok(equals(&a.as_bytes(), &b.as_bytes())))?,
    )?;
    kirin.set("random", lua.create_function(random)?)
}

/// HTML text and attribute values.
fn escape(lua: &Lua, text: LuaString) -> Result<LuaString> {
    let bytes = text.as_bytes();
    let special = |byte: &u8| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\'');
    let Some(first) = bytes.iter().position(special) else { return Ok(text.clone()) };
    let mut out = Vec::with_capacity(bytes.len() + 32);
    out.extend_from_slice(&bytes[..first]);
    for byte in &bytes[first..] {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            other => out.push(*other),
        }
    }
    lua.create_string(out)
}

/// All but the unreserved characters of RFC 3986 section 2.3 as `%XX`.
fn escape_url(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            out.push(b'%');
            out.extend(hex(&[byte]).to_ascii_uppercase());
        }
    }
    out
}

/// Takes `%XX` apart, and `+` for a space in forms. What is no escape stays.
pub(crate) fn unescape_url(text: &[u8], plus: bool) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| (*byte as char).to_digit(16));
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'+' if plus => out.push(b' '),
            b'%' => match (digit(text.get(at)), digit(text.get(at + 1))) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    at += 2;
                }
                _ => out.push(b'%'),
            },
            other => out.push(other),
        }
    }
    out
}

fn hmac_sha256(lua: &Lua, (key, text): (LuaString, LuaString)) -> Result<LuaString> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.as_bytes()).map_err(Error::external)?;
    mac.update(&text.as_bytes());
    lua.create_string(mac.finalize().into_bytes())
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]).collect()
}

/// Either alphabet; nil for what is not base64.
fn unbase64(lua: &Lua, text: LuaString) -> Result<Option<LuaString>> {
    let text = text.as_bytes();
    let decoded = BASE64_STANDARD.decode(&*text).or_else(|_| BASE64_URL_SAFE_NO_PAD.decode(&*text));
    decoded.ok().map(|bytes| lua.create_string(bytes)).transpose()
}

/// In a time that does not tell where they differ; that their lengths do, it tells.
fn equals(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differences) == 0
}

fn random(lua: &Lua, count: usize) -> Result<LuaString> {
    if count > MAX_RANDOM {
        return Err(Error::runtime(format!("random: at most {MAX_RANDOM} bytes")));
    }
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes).map_err(Error::external)?;
    lua.create_string(bytes)
}
