//! A parsed command line, and the limits that it must keep.

use super::command::{Command, DataBlock, MetaSet, Storage};

/// The longest command line in bytes, unless it is a retrieval. A client that sends more without a
/// line end is disconnected (`try_read_command_ascii` of memcached).
pub const LINE_LIMIT_BYTES: usize = 2048;

/// The longest line of `get`, `gets`, `gat` or `gats` in bytes. memcached has no limit. This one
/// takes 4,000 keys of the longest size.
pub const RETRIEVAL_LINE_LIMIT_BYTES: usize = 1 << 20;

/// The settings of the server that the codec needs.
#[derive(Clone, Copy, Debug)]
pub struct CodecLimits {
    /// The largest item in bytes (`-I`). The key, the value and 48 to 60 bytes for memcached's item
    /// header count. So the same values fit as in a memcached with that setting.
    pub item_size_bytes: usize,
    /// Whether `flush_all` is allowed. `-F` forbids it.
    pub flush_enabled: bool,
    /// Whether the items may be listed. `-X` forbids it.
    pub dump_enabled: bool,
    /// Whether `watch` is allowed. `-W` forbids it.
    pub watch_enabled: bool,
}

impl Default for CodecLimits {
    fn default() -> Self {
        CodecLimits {
            item_size_bytes: 1 << 20,
            flush_enabled: true,
            dump_enabled: true,
            watch_enabled: true,
        }
    }
}

/// The reason why a connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Close {
    /// There are more than [`LINE_LIMIT_BYTES`] without a line end.
    #[error("a command line longer than {LINE_LIMIT_BYTES} bytes")]
    LineTooLong,
    /// The input is an HTTP request. A web page may have made a browser send it.
    #[error("an HTTP request")]
    Http,
}

/// A parsed line: a command, or a storage command without its data block.
pub(super) enum Line<'a> {
    Command(Command<'a>),
    /// The data block follows and is needed.
    Block(PendingStore<'a>),
    /// The data block follows and is skipped. It has this many bytes.
    Skip(Command<'a>, usize),
    Close(Close),
}

/// A storage command without its value, and the length of that value.
pub(super) struct PendingStore<'a> {
    pub(super) command: Command<'a>,
    pub(super) value_bytes: usize,
}

impl<'a> PendingStore<'a> {
    pub(super) fn with(self, bytes: DataBlock<'a>) -> Command<'a> {
        let mut command = self.command;
        match &mut command {
            Command::Store(Storage { value, .. }) | Command::MetaSet(MetaSet { value, .. }) => {
                *value = bytes
            }
            _ => {}
        }
        command
    }

    /// Returns the error for a data block that does not end where its line said. As in memcached,
    /// the bytes that follow are read as commands.
    pub(super) fn without_line_end(&self) -> Command<'a> {
        let noreply = matches!(&self.command, Command::Store(Storage { noreply: true, .. }));
        Command::Answer((!noreply).then_some("CLIENT_ERROR bad data chunk"))
    }
}

pub(super) fn error<'a>() -> Line<'a> {
    Line::Command(Command::Answer(Some("ERROR")))
}

pub(super) fn answer<'a>(text: &'static str, noreply: bool) -> Line<'a> {
    Line::Command(Command::Answer((!noreply).then_some(text)))
}

/// Returns whether memcached would accept an item under its size limit. Its items have a header of
/// 48 bytes, the CAS unique, the key with a NUL, client flags unless they are 0, and the CR LF
/// (`item_size_ok` of memcached).
pub(super) fn fits(
    limits: &CodecLimits,
    key_bytes: usize,
    client_flags: u32,
    value_bytes: usize,
) -> bool {
    let flags_bytes = if client_flags == 0 { 0 } else { 4 };
    48 + 8 + key_bytes + 1 + flags_bytes + value_bytes + 2 <= limits.item_size_bytes
}
