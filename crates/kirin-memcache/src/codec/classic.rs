//! The commands with words as names: retrieval, storage, arithmetic.

use kirin_store::{Direction, StoreMode};

use super::admin;
use super::command::{
    Arithmetic, Command, DataBlock, KEY_LIMIT_BYTES, Key, Retrieval, Storage, verb,
};
use super::line::{Close, CodecLimits, Line, PendingStore, answer, error, fits};
use super::number::{Exptime, parse_i32, parse_u32, parse_u64};
use super::tokens::{Keys, Tokens};

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";

/// Parses `get` or `gets`. `keys` is the rest of the line.
pub(super) fn retrieval(keys: Keys<'_>, with_cas: bool) -> Line<'_> {
    if { keys }.next().is_none() {
        return error();
    }
    retrieve(keys, with_cas, None)
}

/// Parses any line that starts with the word `name`.
pub(super) fn parse<'a>(
    name: &[u8],
    line: &'a [u8],
    tokens: &Tokens<'a>,
    limits: &CodecLimits,
) -> Line<'a> {
    match name {
        // Only lines with blanks before the name come here.
        b"get" | b"bget" => retrieval(Keys::after_words(line, 1), false),
        b"gets" => retrieval(Keys::after_words(line, 1), true),
        b"gat" => retrieval_with_touch(line, tokens, false),
        b"gats" => retrieval_with_touch(line, tokens, true),
        b"set" => storage(StoreMode::Set, false, tokens, limits),
        b"add" => storage(StoreMode::Add, false, tokens, limits),
        b"replace" => storage(StoreMode::Replace, false, tokens, limits),
        b"append" => storage(StoreMode::Append, false, tokens, limits),
        b"prepend" => storage(StoreMode::Prepend, false, tokens, limits),
        b"cas" => storage(StoreMode::Set, true, tokens, limits),
        b"incr" => arithmetic(Direction::Up, tokens),
        b"decr" => arithmetic(Direction::Down, tokens),
        b"touch" => touch(tokens),
        b"delete" => delete(tokens),
        _ => admin::parse(name, tokens, limits).unwrap_or_else(|| unknown(tokens)),
    }
}

/// Answers a line with an unknown command.
///
/// Closes the connection on HTTP, as memcached does. A web page can make a browser send a request
/// whose body consists of commands.
fn unknown<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    let http = tokens.from(0).last().is_some_and(|token| token.starts_with(b"HTTP/"));
    // Commands start with these letters, and memcached does not check further.
    let known_letter =
        matches!(tokens.get(0).first(), Some(b'g' | b's' | b'a' | b'c' | b'i' | b'd' | b't'));
    if http && !known_letter { Line::Close(Close::Http) } else { error() }
}

fn retrieve(keys: Keys<'_>, with_cas: bool, touch: Option<Exptime>) -> Line<'_> {
    let too_long =
        keys.rest().len() > KEY_LIMIT_BYTES && { keys }.any(|key| key.len() > KEY_LIMIT_BYTES);
    if too_long {
        return answer(BAD_FORMAT, false);
    }
    Line::Command(Command::Retrieve(Retrieval { with_cas, touch, keys }))
}

fn retrieval_with_touch<'a>(line: &'a [u8], tokens: &Tokens<'a>, with_cas: bool) -> Line<'a> {
    if tokens.count() < 2 {
        return error();
    }
    match parse_i32(tokens.get(1)) {
        Some(exptime) => retrieve(Keys::after_words(line, 2), with_cas, Some(Exptime(exptime))),
        None => answer("CLIENT_ERROR invalid exptime argument", false),
    }
}

fn storage<'a>(
    mode: StoreMode,
    compares: bool,
    tokens: &Tokens<'a>,
    limits: &CodecLimits,
) -> Line<'a> {
    let words = if compares { 6 } else { 5 };
    if tokens.count() != words && tokens.count() != words + 1 {
        return error();
    }
    let noreply = tokens.noreply();
    let key = tokens.get(1);
    let cas = if compares { parse_u64(tokens.get(5)).map(Some) } else { Some(None) };
    let numbers =
        (parse_u32(tokens.get(2)), parse_i32(tokens.get(3)), parse_i32(tokens.get(4)), cas);
    let (Some(flags), Some(exptime), Some(length), Some(compare_cas)) = numbers else {
        return answer(BAD_FORMAT, noreply);
    };
    let Some(value_bytes) = value_length(length).filter(|_| key.len() <= KEY_LIMIT_BYTES) else {
        return answer(BAD_FORMAT, noreply);
    };
    if !fits(limits, key.len(), flags, value_bytes) {
        let key = Key { bytes: key.into(), base64: false };
        let command = Command::TooLarge {
            key,
            verb: verb(mode, compares),
            remove: mode == StoreMode::Set && !compares,
            noreply,
        };
        return Line::Skip(command, value_bytes + 2);
    }
    let value = DataBlock::Borrowed(b"");
    let storage =
        Storage { mode, key, flags, exptime: Exptime(exptime), compare_cas, noreply, value };
    Line::Block(PendingStore { command: Command::Store(storage), value_bytes })
}

/// Returns a length if memcached would go on to read as much.
pub(super) fn value_length(announced: i32) -> Option<usize> {
    if announced > i32::MAX - 2 {
        return None;
    }
    usize::try_from(announced).ok()
}

/// Parses `COMMAND KEY NUMBER [noreply]`. Checks what these commands have in common and leaves the
/// rest to `command`, which gets the key and `noreply`.
fn number_command<'a>(
    tokens: &Tokens<'a>,
    command: impl FnOnce(&'a [u8], bool) -> Line<'a>,
) -> Line<'a> {
    if !matches!(tokens.count(), 3 | 4) {
        return error();
    }
    let noreply = tokens.noreply();
    let key = tokens.get(1);
    if key.len() > KEY_LIMIT_BYTES {
        return answer(BAD_FORMAT, noreply);
    }
    command(key, noreply)
}

fn arithmetic<'a>(direction: Direction, tokens: &Tokens<'a>) -> Line<'a> {
    number_command(tokens, |key, noreply| match parse_u64(tokens.get(2)) {
        Some(delta) => {
            Line::Command(Command::Arithmetic(Arithmetic { direction, key, delta, noreply }))
        }
        None => answer("CLIENT_ERROR invalid numeric delta argument", noreply),
    })
}

fn touch<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    number_command(tokens, |key, noreply| match parse_i32(tokens.get(2)) {
        Some(exptime) => Line::Command(Command::Touch { key, exptime: Exptime(exptime), noreply }),
        None => answer("CLIENT_ERROR invalid exptime argument", noreply),
    })
}

fn delete<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    if !matches!(tokens.count(), 2..=4) {
        return error();
    }
    let key = tokens.get(1);
    let noreply = tokens.count() > 2 && tokens.noreply();
    // An old form gave a time for which the key stays blocked. Only 0 is still accepted.
    let hold_is_zero = tokens.get(2) == b"0";
    let valid = match tokens.count() {
        2 => true,
        3 => hold_is_zero || noreply,
        _ => hold_is_zero && noreply,
    };
    if !valid {
        return answer(
            "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            noreply,
        );
    }
    if key.len() > KEY_LIMIT_BYTES {
        return answer(BAD_FORMAT, noreply);
    }
    Line::Command(Command::Delete { key, noreply })
}
