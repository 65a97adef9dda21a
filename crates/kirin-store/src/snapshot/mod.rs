//! Snapshots: the store in a file, for a warm start.
//!
//! A file is a header, blocks of records and a footer, all little-endian:
//!
//! ```text
//! header  "KIRINSNP"  version u32  written_at u64  last_sequence u64  xxh3-64 of these
//! block   length u32 (> 0)  xxh3-64 of the payload  payload: whole records
//! footer  0 u32  items u64  payload bytes u64  xxh3-64 of header and all block checksums  "KIRINEND"
//! record  cas u64  expires u32  last access u32  flags u32  marks u8  tags u8  key length u16
//!         value length u32  (tag length u8, tag)*  key  value
//! ```
//!
//! Times in the file are those of the wall clock, so lifetimes go on counting while the program is
//! stopped. Reading goes over the file twice: once to check every byte of it, and only then to load
//! it.

mod error;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::Ordering;

use rustix::fs::OFlags;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::clock::{Expires, Now};
use crate::commands::storage::NewItem;
use crate::items::item::ItemRef;
use crate::items::value::Value;
use crate::memory::slab::mark;
use crate::store::Store;
pub use error::SnapshotError;

const MAGIC: &[u8; 8] = b"KIRINSNP";
const END_MAGIC: &[u8; 8] = b"KIRINEND";
/// The format written and read.
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 8 + 4 + 8 + 8 + 8;
const FOOTER_BYTES: usize = 8 + 8 + 8 + 8;
const RECORD_FIXED_BYTES: usize = 8 + 4 + 4 + 4 + 1 + 1 + 2 + 4;
/// A block is closed when it holds this much.
const BLOCK_BYTES: usize = 256 << 10;
/// Slots read under one lock.
const SLOTS_PER_LOCK: usize = 256;

/// What was written or loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSummary {
    /// Items written or loaded.
    pub items: u64,
    /// Items in the file that were not loaded: expired meanwhile, present already, or no room.
    pub skipped: u64,
    /// Bytes of records.
    pub bytes: u64,
}

/// The moment of writing or loading a snapshot, by the two clocks that it translates between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotTime {
    /// By the clock that the store's callers use. It may be one that nobody sets.
    pub now: Now,
    /// By the wall clock, which another program that reads the file has too.
    pub wall: Now,
}

impl From<Now> for SnapshotTime {
    /// For a store whose clock is the wall clock.
    fn from(now: Now) -> Self {
        Self { now, wall: now }
    }
}

impl SnapshotTime {
    fn wall_moment_of(self, moment: Now) -> Now {
        shifted(moment, self.now, self.wall)
    }

    fn store_moment_of(self, moment: Now) -> Now {
        shifted(moment, self.wall, self.now)
    }
}

/// `moment` of the clock that shows `from`, by the clock that shows `to`. The last moment of all
/// stands for all later ones and stays.
fn shifted(moment: Now, from: Now, to: Now) -> Now {
    let last = u64::from(u32::MAX);
    match moment.unix_seconds() {
        seconds if seconds == last => moment,
        seconds => Now::from_unix_seconds(
            (seconds + to.unix_seconds()).saturating_sub(from.unix_seconds()),
        ),
    }
}

/// The same for the end of an item's life.
fn shifted_expiry(expires: Expires, shift: impl Fn(Now) -> Now) -> Expires {
    expires.moment().map_or(Expires::NEVER, |moment| Expires::at(shift(moment)))
}

impl Store {
    /// Writes all live items to `to`, each shard in the order its items would leave. Others may use
    /// the store meanwhile; an item that changes during that is written as it was or as it becomes.
    pub fn write_snapshot(
        &self,
        to: &mut impl Write,
        time: impl Into<SnapshotTime>,
    ) -> Result<SnapshotSummary, SnapshotError> {
        let time = time.into();
        let now = time.now;
        let mut blocks = BlockWriter::begin(to, time, self.last_sequence())?;
        for part in &self.parts {
            let order = part.shard.read().in_queue_order();
            for some in order.chunks(SLOTS_PER_LOCK) {
                let items: Vec<ItemRef> = {
                    let shard = part.shard.read();
                    let live = some.iter().filter(|&&index| shard.occupied(index).is_some());
                    live.filter_map(|&index| {
                        use crate::invalidation::verdict::Verdict::{Expired, Fresh, Gone, Stale};
                        match self.verdict(&shard, index, now) {
                            Fresh => Some(shard.item(index, 0)),
                            Stale => Some(shard.item(index, mark::STALE)),
                            Gone | Expired => None,
                        }
                    })
                    .collect()
                };
                for item in &items {
                    blocks.record(item)?;
                }
            }
        }
        blocks.finish()
    }

    /// Loads a snapshot. The whole of it is checked before the first item goes in; what is damaged
    /// or foreign changes nothing. Items that are in the store already are kept.
    pub fn read_snapshot(
        &self,
        from: &mut (impl Read + Seek),
        time: impl Into<SnapshotTime>,
    ) -> Result<SnapshotSummary, SnapshotError> {
        let time = time.into();
        let start = from.stream_position()?;
        let last_sequence = check(from)?;
        from.seek(SeekFrom::Start(start + HEADER_BYTES as u64))?;
        self.sequences.fetch_max(last_sequence, Ordering::Relaxed);
        let mut summary = SnapshotSummary::default();
        let mut block = Vec::new();
        loop {
            let length = u32::from_le_bytes(read_array(from)?) as usize;
            if length == 0 {
                return Ok(summary);
            }
            let _checked = u64::from_le_bytes(read_array(from)?);
            block.resize(length, 0);
            from.read_exact(&mut block)?;
            summary.bytes += length as u64;
            let mut records = &block[..];
            while !records.is_empty() {
                let record = StoredRecord::parse(&mut records).ok_or(SnapshotError::Damaged {
                    at_byte: 0,
                    what: "a record does not fit its block",
                })?;
                if self.load(&record, time) {
                    summary.items += 1;
                } else {
                    summary.skipped += 1;
                }
            }
        }
    }

    /// Enters one loaded item, unless it expired, is there already, or there is no room.
    fn load(&self, record: &StoredRecord<'_>, time: SnapshotTime) -> bool {
        let expires = shifted_expiry(Expires::from_raw(record.expires), |moment| {
            time.store_moment_of(moment)
        });
        if expires.is_due(time.now)
            || !self.is_storable(record.key, record.value.len(), &record.tags)
        {
            return false;
        }
        let hash = self.hash(record.key);
        let mut shard = self.write(hash);
        if shard.find(hash, record.key).is_some() {
            return false;
        }
        let item = NewItem {
            value: Value::Copied(record.value),
            flags: record.flags,
            expires,
            tags: &record.tags,
        };
        let mut entered = self.fresh(&shard, record.key, &item);
        // A CAS that a client chose says nothing of when the item was stored.
        entered.side.sequence = (record.cas > self.last_sequence()).then(|| self.next_sequence());
        entered.cas = record.cas;
        entered.last_access = time.store_moment_of(Now::from_raw(record.last_access));
        entered.marks = record.marks;
        let bytes = shard.growth_bytes(&entered, None);
        // A snapshot that is larger than the limit by now must not push out what it just loaded.
        if !self.budget.reserve(bytes) {
            return false;
        }
        shard.reserved_bytes += bytes;
        shard.insert(hash, entered);
        true
    }
}

/// Writes a snapshot to `path`: to `path.tmp` first, which is synced and then renamed, so that
/// `path` is at any time a whole snapshot or the one before. `may_replace` is asked right before
/// that: what is there stays if it says no, and the result is `None`.
///
/// The name of the temporary file is always the same, so that a process that is killed leaves at
/// most one. A lock on it makes others that write to the same path wait, in this process and in
/// others.
pub fn save_snapshot_file(
    store: &Store,
    path: &Path,
    time: impl Into<SnapshotTime>,
    may_replace: impl FnOnce() -> bool,
) -> Result<Option<SnapshotSummary>, SnapshotError> {
    let temporary = path.with_added_extension("tmp");
    let cannot = |action| {
        let path = temporary.clone();
        move |source| SnapshotError::File { path, action, source }
    };
    let file = open_locked(&temporary).map_err(cannot("create it"))?;
    let written = write_and_rename(store, path, &temporary, &file, time.into(), may_replace);
    if !matches!(written, Ok(Some(_))) {
        // Best effort: the error that is returned says more than a failing clean-up could.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Opens the temporary file for this process alone, empty. Waits until nobody else has it.
fn open_locked(temporary: &Path) -> io::Result<File> {
    loop {
        // For nobody else to read: items are sessions and pages of one visitor, too. It does not
        // wait for the reader of a FIFO, and does not write where a link leads.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = file.open(temporary)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.lock()?;
        // Whoever had it before has renamed or removed it.
        let is_same = |there: fs::Metadata| {
            file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        };
        if fs::symlink_metadata(temporary).is_ok_and(is_same) {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

fn write_and_rename(
    store: &Store,
    path: &Path,
    temporary: &Path,
    file: &File,
    time: SnapshotTime,
    may_replace: impl FnOnce() -> bool,
) -> Result<Option<SnapshotSummary>, SnapshotError> {
    let cannot = |action| {
        move |source| SnapshotError::File { path: temporary.to_path_buf(), action, source }
    };
    let mut to = BufWriter::with_capacity(1 << 20, file);
    let summary = store.write_snapshot(&mut to, time)?;
    to.into_inner().map_err(|error| cannot("write it")(error.into_error()))?;
    file.sync_all().map_err(cannot("sync it"))?;
    if !may_replace() {
        return Ok(None);
    }
    fs::rename(temporary, path).map_err(cannot("rename it"))?;
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(cannot("sync its directory"))?;
    Ok(Some(summary))
}

/// Loads the snapshot at `path`.
pub fn load_snapshot_file(
    store: &Store,
    path: &Path,
    time: impl Into<SnapshotTime>,
) -> Result<SnapshotSummary, SnapshotError> {
    let open = |source| SnapshotError::File { path: path.to_path_buf(), action: "open it", source };
    // A FIFO that nobody writes to would be waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(open)?;
    let mut from = BufReader::with_capacity(1 << 20, file);
    store.read_snapshot(&mut from, time)
}

/// Collects records into blocks.
struct BlockWriter<'a, W> {
    to: &'a mut W,
    time: SnapshotTime,
    block: Vec<u8>,
    sums: Xxh3,
    summary: SnapshotSummary,
}

impl<'a, W: Write> BlockWriter<'a, W> {
    fn begin(
        to: &'a mut W,
        time: SnapshotTime,
        last_sequence: u64,
    ) -> io::Result<BlockWriter<'a, W>> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&time.wall.unix_seconds().to_le_bytes());
        header.extend_from_slice(&last_sequence.to_le_bytes());
        header.extend_from_slice(&xxh3_64(&header).to_le_bytes());
        to.write_all(&header)?;
        let mut sums = Xxh3::new();
        sums.update(&header);
        Ok(BlockWriter { to, time, block: Vec::new(), sums, summary: SnapshotSummary::default() })
    }

    fn record(&mut self, item: &ItemRef) -> io::Result<()> {
        let (block, time) = (&mut self.block, self.time);
        let value = item.value_slice();
        let expires = shifted_expiry(item.expires, |moment| time.wall_moment_of(moment));
        block.extend_from_slice(&item.cas.to_le_bytes());
        block.extend_from_slice(&expires.raw().to_le_bytes());
        block.extend_from_slice(&time.wall_moment_of(item.last_access).raw().to_le_bytes());
        block.extend_from_slice(&item.flags.to_le_bytes());
        block.push(item.marks);
        block.push(item.tags().count() as u8);
        block.extend_from_slice(&item.key_len.to_le_bytes());
        block.extend_from_slice(&(value.len() as u32).to_le_bytes());
        for tag in item.tags() {
            block.push(tag.len() as u8);
            block.extend_from_slice(tag);
        }
        block.extend_from_slice(item.key());
        block.extend_from_slice(value);
        self.summary.items += 1;
        if self.block.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    fn close_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let sum = xxh3_64(&self.block).to_le_bytes();
        self.to.write_all(&(self.block.len() as u32).to_le_bytes())?;
        self.to.write_all(&sum)?;
        self.to.write_all(&self.block)?;
        self.sums.update(&sum);
        self.summary.bytes += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<SnapshotSummary, SnapshotError> {
        self.close_block()?;
        self.to.write_all(&0u32.to_le_bytes())?;
        self.to.write_all(&self.summary.items.to_le_bytes())?;
        self.to.write_all(&self.summary.bytes.to_le_bytes())?;
        self.to.write_all(&self.sums.digest().to_le_bytes())?;
        self.to.write_all(END_MAGIC)?;
        self.to.flush()?;
        Ok(self.summary)
    }
}

/// Reads a whole snapshot and compares all its checksums and counts. Returns the last number.
fn check(from: &mut impl Read) -> Result<u64, SnapshotError> {
    let mut at_byte = 0u64;
    let damaged = |at_byte, what| SnapshotError::Damaged { at_byte, what };
    let mut header = Vec::new();
    from.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    if !header.starts_with(MAGIC) {
        let found = header.get(..header.len().min(MAGIC.len())).unwrap_or_default();
        // The beginning of our own magic is a file cut off early, not somebody else's.
        if !found.is_empty() && MAGIC.starts_with(found) {
            return Err(damaged(header.len() as u64, "the file ends in its header"));
        }
        return Err(SnapshotError::Foreign { found: found.escape_ascii().to_string() });
    }
    let mut fields = &header[MAGIC.len()..];
    let ends = || damaged(header.len() as u64, "the file ends in its header");
    let version = u32::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    if version != VERSION {
        return Err(SnapshotError::Version { found: version, supported: VERSION });
    }
    let _written_at = u64::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    let last_sequence = u64::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    let header_sum = u64::from_le_bytes(take_array(&mut fields).ok_or_else(ends)?);
    if header_sum != xxh3_64(&header[..HEADER_BYTES - 8]) {
        return Err(damaged(0, "the header's checksum does not match"));
    }
    at_byte += HEADER_BYTES as u64;

    let mut sums = Xxh3::new();
    sums.update(&header);
    let (mut items, mut bytes) = (0u64, 0u64);
    let mut block = Vec::new();
    loop {
        let length = read_checked(from, at_byte).map(u32::from_le_bytes)?;
        at_byte += 4;
        if length == 0 {
            break;
        }
        let sum: [u8; 8] = read_checked(from, at_byte)?;
        // `read_to_end` grows with what is there, so that a wrong length allocates nothing.
        block.clear();
        from.take(length.into()).read_to_end(&mut block)?;
        if block.len() < length as usize {
            return Err(damaged(at_byte + 8 + block.len() as u64, "the file ends in a block"));
        }
        if xxh3_64(&block).to_le_bytes() != sum {
            return Err(damaged(at_byte, "a block's checksum does not match"));
        }
        let mut records = &block[..];
        while !records.is_empty() {
            StoredRecord::parse(&mut records)
                .ok_or(damaged(at_byte, "a record does not fit its block"))?;
            items += 1;
        }
        sums.update(&sum);
        bytes += u64::from(length);
        at_byte += 8 + u64::from(length);
    }
    let footer: [u8; FOOTER_BYTES] = read_checked(from, at_byte)?;
    let mut want = Vec::with_capacity(FOOTER_BYTES);
    want.extend_from_slice(&items.to_le_bytes());
    want.extend_from_slice(&bytes.to_le_bytes());
    want.extend_from_slice(&sums.digest().to_le_bytes());
    want.extend_from_slice(END_MAGIC);
    if footer[..] != want[..] {
        return Err(damaged(at_byte, "the footer does not match what comes before it"));
    }
    if from.read(&mut [0])? != 0 {
        return Err(damaged(at_byte + FOOTER_BYTES as u64, "there is more after the footer"));
    }
    Ok(last_sequence)
}

/// A record as it lies in its block.
struct StoredRecord<'a> {
    cas: u64,
    expires: u32,
    last_access: u32,
    flags: u32,
    marks: u8,
    tags: Vec<&'a [u8]>,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> StoredRecord<'a> {
    /// Takes one record off `records`.
    fn parse(records: &mut &'a [u8]) -> Option<StoredRecord<'a>> {
        if records.len() < RECORD_FIXED_BYTES {
            return None;
        }
        let cas = u64::from_le_bytes(take_array(records)?);
        let expires = u32::from_le_bytes(take_array(records)?);
        let last_access = u32::from_le_bytes(take_array(records)?);
        let flags = u32::from_le_bytes(take_array(records)?);
        let [marks, tag_count] = take_array(records)?;
        let key_len = u16::from_le_bytes(take_array(records)?);
        let value_len = u32::from_le_bytes(take_array(records)?);
        let mut tags = Vec::with_capacity(tag_count.into());
        for _ in 0..tag_count {
            let [tag_len] = take_array(records)?;
            tags.push(take(records, tag_len.into())?);
        }
        let key = take(records, key_len.into())?;
        let value = take(records, value_len as usize)?;
        Some(StoredRecord { cas, expires, last_access, flags, marks, tags, key, value })
    }
}

fn take<'a>(from: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    from.split_off(..len)
}

fn take_array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = from.split_first_chunk::<N>()?;
    *from = rest;
    Some(*array)
}

fn read_array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    from.read_exact(&mut array)?;
    Ok(array)
}

/// Reads a field; a file that ends there is damaged.
fn read_checked<const N: usize>(
    from: &mut impl Read,
    at_byte: u64,
) -> Result<[u8; N], SnapshotError> {
    read_array(from).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            SnapshotError::Damaged { at_byte, what: "the file ends early" }
        }
        _ => SnapshotError::Io(error),
    })
}
