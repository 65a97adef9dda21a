//! The memcached text and meta protocols: bytes in, [`Command`]s out. No I/O, no clock, no store.
//!
//! [`parse`] is given what has arrived and takes one command off its front. The `session` calls it
//! in a loop; the fuzzer and the tests call it with the same bytes.
//!
//! The grammar is that of memcached 1.6 as it is, not only as `protocol.txt` says it, down to
//! which mistake is answered with which line: clients have come to depend on it. Differences are
//! listed in `docs/memcached.md`.

mod admin;
mod classic;
mod command;
mod extension;
mod meta;
mod meta_flags;
mod number;
mod tokens;

pub use command::{
    Arithmetic, Command, DataBlock, KEY_LIMIT_BYTES, Key, Meta, MetaSet, Retrieval, StatsTopic,
    Storage,
};
pub use extension::{Extension, TAG_LIMIT_BYTES, TAGS_PER_COMMAND, Tags};
pub use meta_flags::MetaFlags;
pub use number::Exptime;
pub use tokens::Keys;

/// A command line other than a retrieval is never longer than this; more without a line end is
/// not a client of ours (`try_read_command_ascii` of memcached closes the connection).
pub const LINE_LIMIT_BYTES: usize = 2048;

/// The longest line of a `get` or one of its siblings. memcached has no limit here; this one
/// takes 4,000 of the longest keys.
pub const RETRIEVAL_LINE_LIMIT_BYTES: usize = 1 << 20;

/// What the codec has to know of the server it works for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest item (`-I`): key, value and 48 to 60 bytes for memcached's item header, so
    /// that the same values fit as in a memcached of that setting.
    pub item_size_bytes: usize,
    /// Whether `flush_all` is allowed (not with `-F`).
    pub flush_enabled: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { item_size_bytes: 1 << 20, flush_enabled: true }
    }
}

/// What was found at the front of the input.
#[derive(Debug, PartialEq)]
pub enum Parsed<'a> {
    /// A whole command, in the first `consumed` bytes; the `skip` bytes after them are the data
    /// block of a refused storage command.
    Command {
        /// What to do.
        command: Command<'a>,
        /// The length of the line, and of the data block if the command took one.
        consumed: usize,
        /// The length of a data block nobody wants.
        skip: usize,
    },
    /// The first line has no end yet.
    NeedLine,
    /// The line of a storage command is whole, the data block is not. When it is, it can come
    /// back in memory of its own through [`parse_stored`].
    NeedBlock {
        /// The length of the line with its end.
        line: usize,
        /// The length of the data block with its CR LF.
        block: usize,
    },
    /// This is no client of ours: close the connection without an answer.
    Close(Close),
}

/// Why a connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Close {
    /// More than [`LINE_LIMIT_BYTES`] without a line end.
    #[error("a command line longer than {LINE_LIMIT_BYTES} bytes")]
    LineTooLong,
    /// An HTTP request: a web page may be trying to make a browser talk to us.
    #[error("an HTTP request")]
    Http,
}

/// A storage line, or the command that a line is alone.
enum Line<'a> {
    Command(Command<'a>),
    /// The data block follows and is wanted.
    Block(PendingStore<'a>),
    /// The data block follows and is not.
    Skip(Command<'a>, usize),
    Close(Close),
}

/// A storage command whose value is not known yet, and the length of that value.
struct PendingStore<'a> {
    command: Command<'a>,
    value_bytes: usize,
}

/// Takes one command off the front of `input`.
pub fn parse<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    let Some(end) = memchr::memchr(b'\n', input) else {
        return unfinished_line(input);
    };
    if end > LINE_LIMIT_BYTES
        && let Parsed::Close(close) = unfinished_line(&input[..end])
    {
        return Parsed::Close(close);
    }
    let consumed = end + 1;
    match parse_line(line_text(&input[..end]), limits) {
        Line::Command(command) => Parsed::Command { command, consumed, skip: 0 },
        Line::Skip(command, skip) => Parsed::Command { command, consumed, skip },
        Line::Close(close) => Parsed::Close(close),
        Line::Block(pending) => {
            let block = pending.value_bytes + 2;
            match input.get(consumed..consumed + block) {
                None => Parsed::NeedBlock { line: consumed, block },
                Some(bytes) => {
                    let command = match bytes.strip_suffix(b"\r\n") {
                        Some(value) => pending.with(DataBlock::Borrowed(value)),
                        None => pending.without_line_end(),
                    };
                    Parsed::Command { command, consumed: consumed + block, skip: 0 }
                }
            }
        }
    }
}

/// The command of a storage `line` that [`parse`] found incomplete, with its whole data block.
pub fn parse_stored<'a>(line: &'a [u8], mut block: Vec<u8>, limits: &Limits) -> Command<'a> {
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

/// An input without a line end: wait for it, or give up on it.
pub fn unfinished_line(input: &[u8]) -> Parsed<'_> {
    if input.len() <= LINE_LIMIT_BYTES {
        return Parsed::NeedLine;
    }
    let blanks = input.iter().take_while(|byte| **byte == b' ').count();
    let text = &input[blanks..];
    let retrieval =
        [&b"get "[..], b"gets ", b"gat ", b"gats "].iter().any(|name| text.starts_with(name));
    if blanks <= 100 && retrieval && input.len() <= RETRIEVAL_LINE_LIMIT_BYTES {
        Parsed::NeedLine
    } else {
        Parsed::Close(Close::LineTooLong)
    }
}

/// The text of a line whose LF is cut off already: without its CR, and up to a NUL, where
/// memcached's C strings end.
fn line_text(line: &[u8]) -> &[u8] {
    // A lone CR stays: it is a (wrong) command of one letter.
    let line = match line {
        [text @ .., b'\r'] if !text.is_empty() => text,
        line => line,
    };
    match memchr::memchr(0, line) {
        Some(end) => &line[..end],
        None => line,
    }
}

fn parse_line<'a>(line: &'a [u8], limits: &Limits) -> Line<'a> {
    // Nine commands of ten are one of these two; they need no list of tokens.
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

impl<'a> PendingStore<'a> {
    fn with(self, bytes: DataBlock<'a>) -> Command<'a> {
        let mut command = self.command;
        match &mut command {
            Command::Store(Storage { value, .. }) | Command::MetaSet(MetaSet { value, .. }) => {
                *value = bytes
            }
            _ => {}
        }
        command
    }

    /// The data block does not end where its line said. What follows is read as commands, as
    /// memcached does.
    fn without_line_end(&self) -> Command<'a> {
        let noreply = matches!(&self.command, Command::Store(Storage { noreply: true, .. }));
        Command::Answer((!noreply).then_some("CLIENT_ERROR bad data chunk"))
    }
}

fn error<'a>() -> Line<'a> {
    Line::Command(Command::Answer(Some("ERROR")))
}

fn answer<'a>(text: &'static str, noreply: bool) -> Line<'a> {
    Line::Command(Command::Answer((!noreply).then_some(text)))
}

/// The largest value memcached would take under the item size limit: its items carry a header of
/// 48 bytes, the cas unique, the key with a NUL, client flags unless 0, and the CR LF
/// (`item_size_ok` of memcached).
fn fits(limits: &Limits, key_bytes: usize, client_flags: u32, value_bytes: usize) -> bool {
    let flags_bytes = if client_flags == 0 { 0 } else { 4 };
    48 + 8 + key_bytes + 1 + flags_bytes + value_bytes + 2 <= limits.item_size_bytes
}
