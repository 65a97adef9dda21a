//! `find`, `match`, `gmatch` and `gsub` of the string library. They use `pattern.rs`, so that they
//! end with the call's time.
//!
//! `gmatch`, and `gsub` with a function or table, are loops over [`next_match`] in `prelude.lua`,
//! because a function that they call may wait.

use mlua::{Error, IntoLua, Lua, LuaString, MultiValue, Result, Table, Value};

use crate::allowance::{Allowance, SLICE_BYTES};
use crate::pattern::{self, Capture, Match, SearchError};
use crate::quick_pattern;

/// The largest pattern, in bytes. A plain text to search for may be longer.
const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// Adds the functions to the host's table.
pub(crate) fn add(lua: &Lua, host: &Table, allowance: &Allowance) -> Result<()> {
    let time = allowance.clone();
    let find = move |lua: &Lua, (subject, pattern, init, plain): FindArguments| {
        search(lua, &time, &subject, &pattern, init, plain.unwrap_or(false), true)
    };
    host.set("find", lua.create_function(find)?)?;
    let time = allowance.clone();
    let matching =
        move |lua: &Lua, (subject, pattern, init): (LuaString, LuaString, Option<i64>)| {
            search(lua, &time, &subject, &pattern, init, false, false)
        };
    host.set("match", lua.create_function(matching)?)?;
    let time = allowance.clone();
    host.set(
        "next_match",
        lua.create_function(move |lua, arguments| next_match(lua, &time, arguments))?,
    )?;
    let longest = |_: &Lua, pattern: LuaString| {
        let longest = quick_pattern::longest_text(&pattern.as_bytes());
        Ok(longest.map_or(-1, |length| length as i64))
    };
    host.set("longest_text", lua.create_function(longest)?)?;
    let time = allowance.clone();
    host.set("gsub", lua.create_function(move |lua, arguments| gsub(lua, &time, arguments))?)
}

type FindArguments = (LuaString, LuaString, Option<i64>, Option<bool>);

/// Converts Lua's `init` to an offset. It starts at 1, or is negative and counts from the end.
fn offset(init: Option<i64>, length: usize) -> usize {
    let init = init.unwrap_or(1);
    let offset = if init > 0 {
        init - 1
    } else if init < 0 {
        length as i64 + init
    } else {
        0
    };
    usize::try_from(offset.max(0)).unwrap_or(usize::MAX)
}

fn run(
    time: &Allowance,
    subject: &[u8],
    pattern: &[u8],
    from: usize,
    anchors: bool,
) -> Result<Option<Match>> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(Error::runtime(format!("pattern too long: {MAX_PATTERN_BYTES} bytes at most")));
    }
    let mut spend = |units: usize| time.spend(u32::try_from(units).unwrap_or(u32::MAX)).map(|_| ());
    pattern::find(subject, pattern, from, anchors, &mut spend).map_err(|error| match error {
        SearchError::Malformed(what) => Error::runtime(what),
        SearchError::Stopped(error) => error,
    })
}

/// Returns whether the pattern is a plain string.
fn is_plain(time: &Allowance, pattern: &[u8]) -> Result<bool> {
    for slice in pattern.chunks(SLICE_BYTES) {
        time.spend_bytes(slice.len())?;
        if !pattern::is_plain(slice) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns where `wanted` is in `text`. Searches one window after the other.
fn find_plain(time: &Allowance, text: &[u8], wanted: &[u8]) -> Result<Option<usize>> {
    if text.len() <= SLICE_BYTES {
        return Ok(memchr::memmem::find(text, wanted));
    }
    time.spend_bytes(wanted.len())?;
    let finder = memchr::memmem::Finder::new(wanted);
    let starts = SLICE_BYTES.max(wanted.len());
    let mut from = 0;
    while from + wanted.len() <= text.len() {
        let end = text.len().min(from + starts + wanted.len());
        time.spend_bytes(end - from)?;
        if let Some(at) = finder.find(&text[from..end]) {
            return Ok(Some(from + at));
        }
        from += starts;
    }
    Ok(None)
}

/// Implements `find`, with positions, and `match`, without.
fn search(
    lua: &Lua,
    time: &Allowance,
    subject: &LuaString,
    pattern: &LuaString,
    init: Option<i64>,
    plain: bool,
    positions: bool,
) -> Result<MultiValue> {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let from = offset(init, subject.len());
    // Lua 5.1 searches at the end then, where an empty match is found.
    let from = from.min(subject.len());
    let found = if plain || is_plain(time, &pattern)? {
        find_plain(time, &subject[from..], &pattern)?.map(|at| Match {
            start: from + at,
            end: from + at + pattern.len(),
            captures: Vec::new(),
        })
    } else {
        run(time, &subject, &pattern, from, true)?
    };
    let Some(found) = found else { return Ok(MultiValue::from_iter([Value::Nil])) };
    let mut results = Vec::with_capacity(found.captures.len() + 2);
    if positions {
        results.push(Value::Integer(found.start as i64 + 1));
        results.push(Value::Integer(found.end as i64));
        for capture in &found.captures {
            results.push(value(lua, time, &subject, capture)?);
        }
    } else {
        push_captures(lua, time, &subject, &found, &mut results)?;
    }
    Ok(MultiValue::from_vec(results))
}

/// Returns the first and last byte of the first match at a position or behind it, and its captures.
fn next_match(
    lua: &Lua,
    time: &Allowance,
    (subject, pattern, from, anchors): (LuaString, LuaString, usize, Option<bool>),
) -> Result<MultiValue> {
    let (subject, pattern) = (subject.as_bytes(), pattern.as_bytes());
    let found = match from.saturating_sub(1) {
        from if from > subject.len() => None,
        from => run(time, &subject, &pattern, from, anchors.unwrap_or(false))?,
    };
    let Some(found) = found else { return Ok(MultiValue::from_iter([Value::Nil])) };
    let mut results =
        vec![Value::Integer(found.start as i64 + 1), Value::Integer(found.end as i64)];
    push_captures(lua, time, &subject, &found, &mut results)?;
    Ok(MultiValue::from_vec(results))
}

fn push_captures(
    lua: &Lua,
    time: &Allowance,
    subject: &[u8],
    found: &Match,
    results: &mut Vec<Value>,
) -> Result<()> {
    if found.captures.is_empty() {
        results.push(value(
            lua,
            time,
            subject,
            &Capture::Bytes { start: found.start, end: found.end },
        )?);
    }
    for capture in &found.captures {
        results.push(value(lua, time, subject, capture)?);
    }
    Ok(())
}

fn value(lua: &Lua, time: &Allowance, subject: &[u8], capture: &Capture) -> Result<Value> {
    match *capture {
        Capture::Bytes { start, end } => {
            time.spend_bytes(end - start)?;
            Ok(Value::String(lua.create_string(&subject[start..end])?))
        }
        Capture::Position(at) => (at + 1).into_lua(lua),
    }
}

/// Implements `gsub` with a string.
fn gsub(
    lua: &Lua,
    time: &Allowance,
    (subject, pattern, replacement, most): (LuaString, LuaString, LuaString, Option<usize>),
) -> Result<(LuaString, usize)> {
    let (text, pattern, replacement) =
        (subject.as_bytes(), pattern.as_bytes(), replacement.as_bytes());
    let most = most.unwrap_or(usize::MAX);
    let is_anchored = pattern.first() == Some(&b'^');
    let (mut out, mut count, mut from, mut copied) = (Vec::new(), 0, 0, 0);
    while count < most && from <= text.len() {
        time.step()?;
        let Some(found) = run(time, &text, &pattern, from, true)? else { break };
        count += 1;
        append(time, &mut out, &text[copied..found.start])?;
        expand(time, &mut out, &text, &replacement, &found)?;
        copied = found.end;
        from = if found.end > found.start { found.end } else { found.start + 1 };
        if is_anchored {
            break;
        }
    }
    if count == 0 {
        return Ok((subject.clone(), 0));
    }
    append(time, &mut out, &text[copied..])?;
    Ok((lua.create_string(&out)?, count))
}

fn append(time: &Allowance, out: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    time.spend_bytes(bytes.len())?;
    time.size(out.len() + bytes.len())?;
    out.extend_from_slice(bytes);
    Ok(())
}

/// Expands `%0` to `%9` in a replacement.
fn expand(
    time: &Allowance,
    out: &mut Vec<u8>,
    text: &[u8],
    replacement: &[u8],
    found: &Match,
) -> Result<()> {
    let mut rest = replacement;
    while let Some(at) = memchr::memchr(b'%', rest) {
        time.step()?;
        append(time, out, &rest[..at])?;
        match rest.get(at + 1) {
            Some(b'0') => append(time, out, &text[found.start..found.end])?,
            Some(b'1') if found.captures.is_empty() => {
                append(time, out, &text[found.start..found.end])?
            }
            Some(digit @ b'1'..=b'9') => match found.captures.get(usize::from(digit - b'1')) {
                Some(&Capture::Bytes { start, end }) => append(time, out, &text[start..end])?,
                Some(&Capture::Position(at)) => {
                    append(time, out, itoa::Buffer::new().format(at + 1).as_bytes())?;
                }
                None => return Err(Error::runtime("invalid capture index")),
            },
            Some(other) => out.push(*other),
            None => out.push(b'%'),
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    append(time, out, rest)
}
