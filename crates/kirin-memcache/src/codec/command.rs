//! The commands of clients as types. The parser makes them, and `execute` carries them out.

use std::borrow::Cow;

use kirin_store::{Direction, StoreMode};

use super::event_kinds::EventKinds;
use super::meta_flags::MetaFlags;
use super::number::Exptime;
use super::tokens::Keys;

/// The longest key in bytes, before base64 decoding (`KEY_MAX_LENGTH` of memcached).
pub const KEY_LIMIT_BYTES: usize = 250;

/// A key as the store has it, and how the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The key in the store.
    pub bytes: Cow<'a, [u8]>,
    /// Whether the client wrote it in base64, and gets it back so (meta flag `b`).
    pub base64: bool,
}

/// The data block of a storage command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataBlock<'a> {
    /// It arrived in one read with its command line and is still there.
    Borrowed(&'a [u8]),
    /// It took more than one read and has memory of its own.
    Owned(Vec<u8>),
}

impl DataBlock<'_> {
    /// Returns the length in bytes.
    pub fn byte_len(&self) -> usize {
        match self {
            DataBlock::Borrowed(bytes) => bytes.len(),
            DataBlock::Owned(bytes) => bytes.len(),
        }
    }
}

impl<'a> From<DataBlock<'a>> for kirin_store::NewValue<'a> {
    fn from(value: DataBlock<'a>) -> kirin_store::NewValue<'a> {
        match value {
            DataBlock::Borrowed(bytes) => bytes.into(),
            DataBlock::Owned(bytes) => bytes.into(),
        }
    }
}

/// `get`, `gets`, `gat` or `gats`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrieval<'a> {
    /// Whether the answer has the CAS unique (`gets`, `gats`).
    pub with_cas: bool,
    /// The new expiry time of the items (`gat`, `gats`).
    pub touch: Option<Exptime>,
    /// The keys. None is longer than [`KEY_LIMIT_BYTES`].
    pub keys: Keys<'a>,
}

/// `set`, `add`, `replace`, `append`, `prepend` or `cas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage<'a> {
    /// The condition on the item that is there. `cas` is `set` with a CAS unique.
    pub mode: StoreMode,
    /// The key under which to store.
    pub key: &'a [u8],
    /// The client flags.
    pub flags: u32,
    /// The expiry time.
    pub exptime: Exptime,
    /// The CAS unique that the item must have (`cas`).
    pub compare_cas: Option<u64>,
    /// Whether no answer is sent.
    pub noreply: bool,
    /// The value to store.
    pub value: DataBlock<'a>,
}

/// `incr` or `decr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arithmetic<'a> {
    /// Whether to add or to subtract.
    pub direction: Direction,
    /// The key of the item.
    pub key: &'a [u8],
    /// The number to add or to subtract.
    pub delta: u64,
    /// Whether no answer is sent.
    pub noreply: bool,
}

/// A meta command without a data block: `mg`, `md` or `ma`.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta<'a> {
    /// The key of the item.
    pub key: Key<'a>,
    /// The flags of the command.
    pub flags: MetaFlags<'a>,
}

/// `ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaSet<'a> {
    /// The key under which to store.
    pub key: Key<'a>,
    /// The condition on the item that is there. The flags may have a CAS unique, too.
    pub mode: StoreMode,
    /// The flags of the command.
    pub flags: MetaFlags<'a>,
    /// The value to store.
    pub value: DataBlock<'a>,
}

/// The table that a `stats` command requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatsTopic {
    /// The general table, without an argument.
    General,
    /// The items of each slab class. There is one class.
    Items,
    /// The slab classes. There is one class.
    Slabs,
    /// The options in force.
    Settings,
    /// The number of items of each size.
    Sizes,
    /// The connections.
    Connections,
    /// Sets the counters to 0.
    Reset,
}

/// The lines of a list of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// `lru_crawler metadump`: a line of `name=value` pairs for each item.
    Metadump,
    /// `lru_crawler mgdump`: an `mg` command for each item.
    Mgdump,
    /// `stats cachedump`: key, length and expiry time.
    Cachedump,
}

/// A command that lists items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemList {
    /// The form of the lines.
    pub format: ListFormat,
    /// The most items that are listed.
    pub limit: Option<u32>,
}

/// `stats detail`: statistics by prefix of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixCommand {
    /// Counts from now on.
    On,
    /// Counts no more. The counts so far stay.
    Off,
    /// Shows the counts.
    Dump,
}

/// Returns the name of the storage command that does this. `compares` is true if it has a CAS
/// unique: `set` and `replace` are a `cas` then.
pub fn verb(mode: StoreMode, compares: bool) -> &'static str {
    match mode {
        StoreMode::Set | StoreMode::Replace if compares => "cas",
        StoreMode::Set => "set",
        StoreMode::Add => "add",
        StoreMode::Replace => "replace",
        StoreMode::Append => "append",
        StoreMode::Prepend => "prepend",
    }
}

/// A command that is ready to be carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<'a> {
    /// `get`, `gets`, `gat` or `gats`.
    Retrieve(Retrieval<'a>),
    /// `set`, `add`, `replace`, `append`, `prepend` or `cas`.
    Store(Storage<'a>),
    /// `delete`.
    Delete {
        /// The key of the item.
        key: &'a [u8],
        /// Whether no answer is sent.
        noreply: bool,
    },
    /// `incr` or `decr`.
    Arithmetic(Arithmetic<'a>),
    /// `touch`.
    Touch {
        /// The key of the item.
        key: &'a [u8],
        /// The expiry time.
        exptime: Exptime,
        /// Whether no answer is sent.
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
        /// The delay; 0 or less means now.
        delay: Exptime,
        /// Whether no answer is sent.
        noreply: bool,
    },
    /// `cache_memlimit`.
    CacheMemlimit {
        /// The new limit in megabytes.
        megabytes: u32,
        /// Whether no answer is sent.
        noreply: bool,
    },
    /// `verbosity`.
    Verbosity {
        /// The level, from 0 to 2.
        level: u32,
        /// Whether no answer is sent.
        noreply: bool,
    },
    /// `version`.
    Version,
    /// `stats`.
    Stats(StatsTopic),
    /// `lru_crawler metadump`, `lru_crawler mgdump` or `stats cachedump`.
    List(ItemList),
    /// `stats detail`.
    Prefixes(PrefixCommand),
    /// `watch`: the connection shows events from now on.
    Watch(EventKinds),
    /// `snapshot`, an extension of Kirin: writes the items to the snapshot file.
    Snapshot,
    /// `quit`: closes the connection after all earlier commands are answered.
    Quit,
    /// A storage command with a value that is too large. Its data block is skipped.
    TooLarge {
        /// The key of the item.
        key: Key<'a>,
        /// The name of the command, as [`verb`] returns it.
        verb: &'static str,
        /// Whether the old item is removed. A client that failed to replace a value must not go on
        /// reading the old one. memcached does so for `set` and `ms`.
        remove: bool,
        /// Whether no answer is sent.
        noreply: bool,
    },
    /// A command whose answer depends only on the command line: an error, or a command without
    /// effect in Kirin. `None` means that no answer is sent.
    Answer(Option<&'static str>),
}
