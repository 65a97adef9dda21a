//! The meta commands, whose names have two letters: `mg`, `ms`, `md`, `ma`, `me`, `mn`.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use kirin_store::{Direction, StoreMode};

use super::classic::value_length;
use super::command::{Command, DataBlock, KEY_LIMIT_BYTES, Key, Meta, MetaSet, verb};
use super::line::{CodecLimits, Line, PendingStore, answer, error, fits};
use super::meta_flags::MetaFlags;
use super::number::parse_i32;
use super::tokens::{Keys, Tokens};

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";

/// The most tokens in a line. memcached takes 20 and counts the end of the line as one.
const TOKEN_LIMIT: usize = 19;

/// The base64 of keys. As in memcached, it is padded, and any trailing bits are accepted.
const KEY_BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Parses a line whose first word is `m` and another letter.
pub(super) fn parse<'a>(line: &'a [u8], tokens: &Tokens<'a>, limits: &CodecLimits) -> Line<'a> {
    match tokens.get(0) {
        b"mg" => without_block(line, tokens, Verb::Get),
        b"ms" => set(line, tokens, limits),
        b"md" => without_block(line, tokens, Verb::Delete),
        b"ma" => without_block(line, tokens, Verb::Arithmetic),
        b"me" => debug(tokens),
        b"mn" => answer("MN", false),
        _ => error(),
    }
}

#[derive(PartialEq)]
enum Verb {
    Get,
    Delete,
    Arithmetic,
}

impl<'a> Key<'a> {
    fn decode(token: &'a [u8], base64: bool) -> Option<Key<'a>> {
        if !base64 {
            return Some(Key { bytes: token.into(), base64 });
        }
        let bytes = KEY_BASE64.decode(token).ok().filter(|bytes| !bytes.is_empty())?;
        Some(Key { bytes: bytes.into(), base64 })
    }
}

fn without_block<'a>(line: &'a [u8], tokens: &Tokens<'a>, verb: Verb) -> Line<'a> {
    if tokens.count() < 2 {
        return error();
    }
    if tokens.get(1).len() > KEY_LIMIT_BYTES {
        return answer(BAD_FORMAT, false);
    }
    if tokens.count() > TOKEN_LIMIT {
        let text = match verb {
            Verb::Get => "CLIENT_ERROR options flags are too long",
            _ => "CLIENT_ERROR options flags too long",
        };
        return answer(text, false);
    }
    let parsed = MetaFlags::parse(Keys::after_words(line, 2)).and_then(|flags| {
        let key =
            Key::decode(tokens.get(1), flags.base64).ok_or("CLIENT_ERROR error decoding key")?;
        Ok(Meta { key, flags })
    });
    let meta = match parsed {
        Ok(meta) => meta,
        Err(text) if verb == Verb::Get => return answer(text, false),
        Err(_) => return answer("CLIENT_ERROR invalid or duplicate flag", false),
    };
    let direction = match meta.flags.mode {
        None | Some(b'I' | b'+') => Direction::Up,
        Some(b'D' | b'-') => Direction::Down,
        Some(_) if verb == Verb::Arithmetic => {
            return answer("CLIENT_ERROR invalid mode for ma M token", false);
        }
        Some(_) => Direction::Up,
    };
    if meta.flags.opaque_too_long() {
        return answer("CLIENT_ERROR opaque token too long", false);
    }
    Line::Command(match verb {
        Verb::Get => Command::MetaGet(meta),
        Verb::Delete => Command::MetaDelete(meta),
        Verb::Arithmetic => Command::MetaArithmetic(meta, direction),
    })
}

fn set<'a>(line: &'a [u8], tokens: &Tokens<'a>, limits: &CodecLimits) -> Line<'a> {
    if tokens.count() < 2 {
        return error();
    }
    if tokens.get(1).len() > KEY_LIMIT_BYTES || tokens.count() == 2 {
        return answer(BAD_FORMAT, false);
    }
    if tokens.count() > TOKEN_LIMIT {
        return answer("CLIENT_ERROR options flags too long", false);
    }
    let Some(value_bytes) = parse_i32(tokens.get(2)).and_then(value_length) else {
        return answer(BAD_FORMAT, false);
    };
    // From here on the length of the data block is known. The block is skipped after any error.
    let refuse = |text| Line::Skip(Command::Answer(Some(text)), value_bytes + 2);
    let flags = match MetaFlags::parse(Keys::after_words(line, 3)) {
        Ok(flags) => flags,
        Err(text) => return refuse(text),
    };
    let Some(key) = Key::decode(tokens.get(1), flags.base64) else {
        return refuse("CLIENT_ERROR error decoding key");
    };
    let mode = match flags.mode {
        None | Some(b'S') => StoreMode::Set,
        Some(b'E') => StoreMode::Add,
        Some(b'A') => StoreMode::Append,
        Some(b'P') => StoreMode::Prepend,
        Some(b'R') => StoreMode::Replace,
        Some(_) => return refuse("CLIENT_ERROR invalid mode for ms M token"),
    };
    if flags.opaque_too_long() {
        return refuse("CLIENT_ERROR opaque token too long");
    }
    if !fits(limits, key.bytes.len(), flags.client_flags, value_bytes) {
        let command = Command::TooLarge {
            key,
            verb: verb(mode, flags.cas.is_some()),
            remove: true,
            noreply: false,
        };
        return Line::Skip(command, value_bytes + 2);
    }
    let set = MetaSet { key, mode, flags, value: DataBlock::Borrowed(b"") };
    Line::Block(PendingStore { command: Command::MetaSet(set), value_bytes })
}

fn debug<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    if tokens.count() < 2 || tokens.get(1).len() > KEY_LIMIT_BYTES {
        return answer(BAD_FORMAT, false);
    }
    match Key::decode(tokens.get(1), tokens.get(2) == b"b") {
        Some(key) => Line::Command(Command::MetaDebug(key)),
        None => answer(BAD_FORMAT, false),
    }
}
