//! The memcached text and meta protocols: bytes in, [`Command`]s out. There is no I/O, no clock and
//! no store here.
//!
//! [`parse`] takes one command off the front of the input. The `session` calls it in a loop. The
//! fuzzer and the tests call it with the same bytes.
//!
//! The grammar is that of memcached 1.6 as implemented, which `protocol.txt` does not describe
//! completely. Each mistake gets the same line as an answer, because clients depend on it.
//! `docs/memcached.md` lists the differences.

mod admin;
mod classic;
mod command;
mod event_kinds;
mod extension;
mod inspect;
mod line;
mod meta;
mod meta_flags;
mod number;
mod tokens;

pub use command::{
    Arithmetic, Command, DataBlock, ItemList, KEY_LIMIT_BYTES, Key, ListFormat, Meta, MetaSet,
    PrefixCommand, Retrieval, StatsTopic, Storage, verb,
};
pub use event_kinds::EventKinds;
pub use extension::{Extension, TAG_LIMIT_BYTES, TAGS_PER_COMMAND, Tags};
pub use line::{Close, CodecLimits, LINE_LIMIT_BYTES, RETRIEVAL_LINE_LIMIT_BYTES};
use line::{Line, error};
pub use meta_flags::MetaFlags;
pub use number::Exptime;
pub use tokens::Keys;

/// The result of parsing the front of the input.
#[derive(Debug, PartialEq)]
pub enum ParsedInput<'a> {
    /// A complete command in the first `consumed` bytes. The `skip` bytes after it are the data
    /// block of a refused storage command.
    Command {
        /// The command.
        command: Command<'a>,
        /// The length of the line in bytes, with the data block if the command has one.
        consumed: usize,
        /// The length in bytes of a data block that is not needed.
        skip: usize,
    },
    /// The first line has no end yet.
    NeedLine,
    /// The line of a storage command is complete, but the data block is not. Later the block can be
    /// passed to [`parse_stored`] in memory of its own.
    NeedBlock {
        /// The length of the line in bytes, with its end.
        line: usize,
        /// The length of the data block in bytes, with its CR LF.
        block: usize,
    },
    /// The peer is not a memcached client. The connection is closed without an answer.
    Close(Close),
}

/// Parses one command at the front of `input`.
pub fn parse<'a>(input: &'a [u8], limits: &CodecLimits) -> ParsedInput<'a> {
    let Some(end) = memchr::memchr(b'\n', input) else {
        return unfinished_line(input);
    };
    if end > LINE_LIMIT_BYTES
        && let ParsedInput::Close(close) = unfinished_line(&input[..end])
    {
        return ParsedInput::Close(close);
    }
    let consumed = end + 1;
    match parse_line(line_text(&input[..end]), limits) {
        Line::Command(command) => ParsedInput::Command { command, consumed, skip: 0 },
        Line::Skip(command, skip) => ParsedInput::Command { command, consumed, skip },
        Line::Close(close) => ParsedInput::Close(close),
        Line::Block(pending) => {
            let block = pending.value_bytes + 2;
            match input.get(consumed..consumed + block) {
                None => ParsedInput::NeedBlock { line: consumed, block },
                Some(bytes) => {
                    let command = match bytes.strip_suffix(b"\r\n") {
                        Some(value) => pending.with(DataBlock::Borrowed(value)),
                        None => pending.without_line_end(),
                    };
                    ParsedInput::Command { command, consumed: consumed + block, skip: 0 }
                }
            }
        }
    }
}

/// Returns the command of a storage `line` whose data block is complete now. [`parse`] found it
/// incomplete before.
pub fn parse_stored<'a>(line: &'a [u8], mut block: Vec<u8>, limits: &CodecLimits) -> Command<'a> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    match parse_line(line_text(text), limits) {
        Line::Block(pending) => {
            if !block.ends_with(b"\r\n") || block.len() != pending.value_bytes + 2 {
                return pending.without_line_end();
            }
            block.truncate(pending.value_bytes);
            pending.with(DataBlock::Owned(block))
        }
        Line::Command(command) | Line::Skip(command, _) => command,
        Line::Close(_) => Command::Quit,
    }
}

/// Decides whether to wait for the end of a line or to close the connection.
pub fn unfinished_line(input: &[u8]) -> ParsedInput<'_> {
    if input.len() <= LINE_LIMIT_BYTES {
        return ParsedInput::NeedLine;
    }
    let blanks = input.iter().take_while(|byte| **byte == b' ').count();
    let text = &input[blanks..];
    let retrieval =
        [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(|name| text.starts_with(name));
    if blanks <= 100 && retrieval && input.len() <= RETRIEVAL_LINE_LIMIT_BYTES {
        ParsedInput::NeedLine
    } else {
        ParsedInput::Close(Close::LineTooLong)
    }
}

/// Returns the text of a line whose LF was removed: without its CR, and up to a NUL, at which
/// memcached's C strings end.
fn line_text(line: &[u8]) -> &[u8] {
    // A lone CR stays. It is an invalid command of one letter.
    let line = match line {
        [text @ .., b'\r'] if !text.is_empty() => text,
        line => line,
    };
    match memchr::memchr(0, line) {
        Some(end) => &line[..end],
        None => line,
    }
}

fn parse_line<'a>(line: &'a [u8], limits: &CodecLimits) -> Line<'a> {
    // Most commands are one of these two. They need no list of tokens.
    if let Some(keys) = line.strip_prefix(b"get ") {
        return classic::retrieval(Keys::split(keys), false);
    }
    if let Some(keys) = line.strip_prefix(b"gets ") {
        return classic::retrieval(Keys::split(keys), true);
    }
    let tokens = tokens::Tokens::split(line);
    let name = tokens.get(0);
    if name.len() < 2 {
        return error();
    }
    match name {
        [b'm', _] => meta::parse(line, &tokens, limits),
        _ => classic::parse(name, line, &tokens, limits),
    }
}
