//! What a client can ask for, as typed values. Made by the parser, carried out by `execute`.

use std::borrow::Cow;

use kirin_store::{Direction, StoreMode};

use super::meta_flags::MetaFlags;
use super::number::Exptime;
use super::tokens::Keys;

/// The longest key, in bytes, before base64 decoding (`KEY_MAX_LENGTH` of memcached).
pub const KEY_LIMIT_BYTES: usize = 250;

/// A key as the store knows it, and how the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The bytes looked up.
    pub bytes: Cow<'a, [u8]>,
    /// Written in base64 (meta flag `b`), and to be given back so.
    pub base64: bool,
}

/// The data block of a storage command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataBlock<'a> {
    /// It came in one read with its command line and still lies there.
    Borrowed(&'a [u8]),
    /// It took more than one read and has memory of its own.
    Owned(Vec<u8>),
}

impl<'a> From<DataBlock<'a>> for kirin_store::Value<'a> {
    fn from(value: DataBlock<'a>) -> kirin_store::Value<'a> {
        match value {
            DataBlock::Borrowed(bytes) => bytes.into(),
            DataBlock::Owned(bytes) => bytes.into(),
        }
    }
}

/// `get`, `gets`, `gat`, `gats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrieval<'a> {
    /// Give the cas unique too (`gets`, `gats`).
    pub with_cas: bool,
    /// Set this expiry time on what is found (`gat`, `gats`).
    pub touch: Option<Exptime>,
    /// The keys, none longer than [`KEY_LIMIT_BYTES`].
    pub keys: Keys<'a>,
}

/// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage<'a> {
    /// Which of them; `cas` is `set` with a condition.
    pub mode: StoreMode,
    /// Where to.
    pub key: &'a [u8],
    /// The client's own number beside the value.
    pub flags: u32,
    /// How long for.
    pub exptime: Exptime,
    /// `cas`: store only over an item with this cas unique.
    pub compare_cas: Option<u64>,
    /// Answer nothing.
    pub noreply: bool,
    /// What to store.
    pub value: DataBlock<'a>,
}

/// `incr`, `decr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arithmetic<'a> {
    /// Up or down.
    pub direction: Direction,
    /// The item to change.
    pub key: &'a [u8],
    /// By how much.
    pub delta: u64,
    /// Answer nothing.
    pub noreply: bool,
}

/// A meta command with no data block: `mg`, `md`, `ma`.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta<'a> {
    /// The item meant.
    pub key: Key<'a>,
    /// What to do and what to answer.
    pub flags: MetaFlags<'a>,
}

/// `ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaSet<'a> {
    /// Where to.
    pub key: Key<'a>,
    /// The condition, beside a cas unique in the flags.
    pub mode: StoreMode,
    /// What to do and what to answer.
    pub flags: MetaFlags<'a>,
    /// What to store.
    pub value: DataBlock<'a>,
}

/// The table a `stats` command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsTopic {
    /// Without an argument.
    General,
    /// Items by slab class: one class here.
    Items,
    /// Slab classes: one here.
    Slabs,
    /// Options in force.
    Settings,
    /// Items by size.
    Sizes,
    /// Connections.
    Connections,
    /// Set the counters to 0.
    Reset,
}

/// One command, ready to be carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<'a> {
    /// `get`, `gets`, `gat`, `gats`.
    Retrieve(Retrieval<'a>),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Store(Storage<'a>),
    /// `delete`.
    Delete {
        /// The item to delete.
        key: &'a [u8],
        /// Answer nothing.
        noreply: bool,
    },
    /// `incr`, `decr`.
    Arithmetic(Arithmetic<'a>),
    /// `touch`.
    Touch {
        /// The item to keep.
        key: &'a [u8],
        /// How long for.
        exptime: Exptime,
        /// Answer nothing.
        noreply: bool,
    },
    /// `mg`.
    MetaGet(Meta<'a>),
    /// `ms`.
    MetaSet(MetaSet<'a>),
    /// `md`.
    MetaDelete(Meta<'a>),
    /// `ma`.
    MetaArithmetic(Meta<'a>, Direction),
    /// `me`.
    MetaDebug(Key<'a>),
    /// `flush_all`.
    FlushAll {
        /// When; now if 0.
        delay: Exptime,
        /// Answer nothing.
        noreply: bool,
    },
    /// `cache_memlimit`.
    CacheMemlimit {
        /// The new budget.
        megabytes: u32,
        /// Answer nothing.
        noreply: bool,
    },
    /// `verbosity`.
    Verbosity {
        /// 0 to 2.
        level: u32,
        /// Answer nothing.
        noreply: bool,
    },
    /// `version`.
    Version,
    /// `stats`.
    Stats(StatsTopic),
    /// `snapshot`, Kirin's own: write the items to the snapshot file now.
    Snapshot,
    /// `quit`: close once everything before it is answered.
    Quit,
    /// A storage command whose value the store would not take. Its data block is skipped.
    TooLarge {
        /// The item it was meant for.
        key: Key<'a>,
        /// Remove what is stored there: a client that failed to replace a value must not go on
        /// reading the old one (memcached does so for `set` and `ms`).
        remove: bool,
        /// Answer nothing.
        noreply: bool,
    },
    /// The answer is known from the command line alone: errors, and commands that have nothing
    /// to act on here. `None` is a command that asked for silence.
    Answer(Option<&'static str>),
}
