//! The log of a shard: keys and values, packed into pages.
//!
//! An allocator cannot free a page of small objects while a few of them are still in use, and a
//! cache always has such objects. With one allocation for each item, a store whose item sizes
//! change needs more than twice its budget. `docs/store.md` has the numbers for three allocators.
//!
//! So records are appended to pages of one size. A replaced or evicted item leaves a hole. When
//! there are many holes, the needed records of the page with the most holes are moved, and the page
//! is freed. This is log-structured memory, see Rumble et al., FAST 2014.
//!
//! Readers copy from a page that is being filled. If a reader has copied a long record, the next
//! sweep closes the page early. A full page is never written again, and readers get a
//! reference-counted slice of it. A freed page that readers still hold stays in the budget until
//! they release it.

use std::sync::Weak;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use crate::memory::page::{HEADER_BYTES, LogPage, PageContents, Record, record_bytes};
use crate::memory::region::{Region, region_bytes};

/// The number of no page.
const NO_PAGE: u32 = u32::MAX;

/// A record of at least this many bytes that is copied for a reader makes its page close early.
const LONG_COPY_BYTES: usize = 1024;

/// The place of a record in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    page: u32,
    offset: u32,
}

impl Address {
    /// The address of no record.
    pub(crate) const NONE: Address = Address { page: NO_PAGE, offset: 0 };
}

/// All pages of a shard.
#[derive(Debug)]
pub(crate) struct Log {
    page_bytes: usize,
    pages: Vec<LogPage>,
    /// The numbers of the vacant pages.
    vacant: Vec<u32>,
    /// The pages that are being filled.
    open: [OpenPage; 2],
    /// Whether a page was closed since [`Log::was_page_closed`] was last called.
    was_page_closed: bool,
    /// Freed pages that readers still hold.
    held_pages: Vec<Weak<()>>,
    /// The number of pages that take memory, with those in `held_pages`.
    allocated_pages: usize,
    live_bytes: usize,
    /// Bytes of holes, without the pages in `held_pages`.
    dead_bytes: usize,
}

/// The two pages that are being filled. Most new records leave soon. Records that compaction has
/// moved have stayed for a while already. With a page for each kind, some pages get many holes and
/// others none, and less has to be moved for the same room.
#[derive(Clone, Copy, Debug)]
enum Fill {
    New,
    Moved,
}

/// A page that is being filled.
#[derive(Debug)]
struct OpenPage {
    page: u32,
    /// Whether a reader had to copy a long record out of it.
    was_copied: AtomicBool,
}

impl Default for OpenPage {
    fn default() -> OpenPage {
        OpenPage { page: NO_PAGE, was_copied: AtomicBool::new(false) }
    }
}

impl Log {
    /// Creates an empty log with pages of `page_bytes`.
    pub(crate) fn new(page_bytes: usize) -> Log {
        Log {
            page_bytes,
            pages: Vec::new(),
            vacant: Vec::new(),
            open: Default::default(),
            was_page_closed: false,
            held_pages: Vec::new(),
            allocated_pages: 0,
            live_bytes: 0,
            dead_bytes: 0,
        }
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Returns the bytes that the log takes from the budget.
    pub(crate) fn bytes(&self) -> usize {
        self.allocated_pages * region_bytes(self.page_bytes)
            + self.pages.capacity() * size_of::<LogPage>()
    }

    /// Returns the bytes of all records that are needed.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// Returns whether the holes are worth compacting: at least a page, and at least a tenth of all
    /// pages.
    pub(crate) fn is_worth_compacting(&self) -> bool {
        self.dead_bytes >= self.page_bytes
            && self.dead_bytes * 10 >= self.allocated_pages * self.page_bytes
    }

    /// Returns the bytes by which a record will grow the log. `len` is the length of key and value.
    pub(crate) fn growth_bytes(&self, len: usize) -> usize {
        if self.fits(Fill::New, record_bytes(len)) {
            return 0;
        }
        let page_table = if self.vacant.is_empty() && self.pages.len() == self.pages.capacity() {
            self.pages.len().max(4)
        } else {
            0
        };
        region_bytes(self.page_bytes) + page_table * size_of::<LogPage>()
    }

    fn fits(&self, fill: Fill, record_bytes: usize) -> bool {
        match self.pages.get(self.open[fill as usize].page as usize).map(|page| &page.contents) {
            Some(PageContents::Open(_, written)) => written + record_bytes <= self.page_bytes,
            _ => false,
        }
    }

    /// Appends a record. Key and value together must be shorter than a page.
    pub(crate) fn append(&mut self, slot: u32, key: &[u8], value: &[u8]) -> Address {
        self.append_to(Fill::New, slot, key, value)
    }

    fn append_to(&mut self, fill: Fill, slot: u32, key: &[u8], value: &[u8]) -> Address {
        let bytes = record_bytes(key.len() + value.len());
        debug_assert!(bytes <= self.page_bytes, "a record of {bytes} bytes fits no page");
        debug_assert!(key.len().max(value.len()) <= u16::MAX.into(), "a length takes two bytes");
        if !self.fits(fill, bytes) {
            self.open_next_page(fill);
        }
        let page_number = self.open[fill as usize].page;
        let page = &mut self.pages[page_number as usize];
        let PageContents::Open(region, written) = &mut page.contents else {
            unreachable!("a page has just been opened")
        };
        let offset = *written as u32;
        let (key_len, value_len) =
            ((key.len() as u16).to_le_bytes(), (value.len() as u16).to_le_bytes());
        for part in [&slot.to_le_bytes()[..], &key_len, &value_len, key, value] {
            region[*written..*written + part.len()].copy_from_slice(part);
            *written += part.len();
        }
        let written = *written;
        page.live_bytes += bytes;
        debug_assert!(page.live_bytes <= written, "{} of {written} bytes", page.live_bytes);
        self.live_bytes += bytes;
        debug_assert!(self.is_counted(), "the bytes of the log are not those of its pages");
        Address { page: page_number, offset }
    }

    /// Closes the page that is being filled and opens another one.
    fn open_next_page(&mut self, fill: Fill) {
        if let Some(page) = self.pages.get_mut(self.open[fill as usize].page as usize)
            && let PageContents::Open(_, written) = page.contents
        {
            page.close(written);
            self.was_page_closed = true;
        }
        let page_number = self.vacant.pop().unwrap_or(self.pages.len() as u32);
        if page_number as usize == self.pages.len() {
            self.pages.push(LogPage::default());
        }
        self.pages[page_number as usize].contents =
            PageContents::Open(Region::zeroed(self.page_bytes), 0);
        self.allocated_pages += 1;
        self.open[fill as usize] =
            OpenPage { page: page_number, was_copied: AtomicBool::new(false) };
        debug_assert!(self.is_counted(), "the pages of the log are not counted");
    }

    /// Returns whether each page is vacant or allocated, and the records and holes fit into the
    /// allocated ones.
    fn is_counted(&self) -> bool {
        let in_use = self.allocated_pages - self.held_pages.len();
        self.pages.len() == self.vacant.len() + in_use
            && self.live_bytes + self.dead_bytes <= in_use * self.page_bytes
    }

    /// Returns whether a reader had to copy a long record out of a page that is being filled.
    pub(crate) fn should_close_early(&self) -> bool {
        self.open.iter().any(|open| open.was_copied.load(Ordering::Relaxed))
    }

    /// Closes the pages that readers had to copy long records from, so that readers share them. The
    /// unused rest of such a page counts as a hole.
    pub(crate) fn close_early(&mut self) {
        for open in &mut self.open {
            if std::mem::take(open.was_copied.get_mut())
                && let Some(page) = self.pages.get_mut(open.page as usize)
                && let PageContents::Open(_, written) = page.contents
                && written > 0
            {
                debug_assert!(written <= self.page_bytes, "{written} bytes are in a page");
                self.dead_bytes += self.page_bytes - written;
                page.close(self.page_bytes);
                open.page = NO_PAGE;
                self.was_page_closed = true;
            }
        }
    }

    /// Returns whether a page was closed since the last call. If so, readers can share content that
    /// they had to copy before.
    pub(crate) fn was_page_closed(&mut self) -> bool {
        std::mem::take(&mut self.was_page_closed)
    }

    /// Notes that the record at an address is not needed any more.
    pub(crate) fn release(&mut self, address: Address) {
        let bytes = self.record(address).bytes();
        let page = &mut self.pages[address.page as usize];
        debug_assert!(page.live_bytes >= bytes, "the record at {address:?} is released twice");
        debug_assert!(self.live_bytes >= bytes, "{bytes} bytes of {}", self.live_bytes);
        page.live_bytes -= bytes;
        self.live_bytes -= bytes;
        self.dead_bytes += bytes;
        if page.live_bytes > 0 {
            return;
        }
        match &mut page.contents {
            // No reader holds this page, so it can be filled from the start again.
            PageContents::Open(_, written) => {
                debug_assert!(self.dead_bytes >= *written, "{} holes", self.dead_bytes);
                self.dead_bytes -= *written;
                *written = 0;
            }
            _ => self.free_page(address.page),
        }
    }

    /// Frees a page in which no record is needed.
    fn free_page(&mut self, page_number: u32) {
        let page = std::mem::take(&mut self.pages[page_number as usize]);
        debug_assert!(page.live_bytes == 0, "page {page_number} has {}", page.live_bytes);
        debug_assert!(self.dead_bytes >= page.written().len(), "{} of holes", self.dead_bytes);
        debug_assert!(self.allocated_pages > self.held_pages.len(), "no page is left to free");
        self.vacant.push(page_number);
        self.dead_bytes -= page.written().len();
        self.allocated_pages -= 1;
        if let PageContents::Closed(written, exists) = page.contents {
            drop(written);
            if exists.strong_count() > 0 {
                self.held_pages.push(exists);
                self.allocated_pages += 1;
            }
        }
        debug_assert!(self.is_counted(), "the pages of the log are not counted");
    }

    /// Forgets the pages in `held_pages` that no reader holds any more.
    pub(crate) fn forget_released_pages(&mut self) {
        let before = self.held_pages.len();
        self.held_pages.retain(|exists| exists.strong_count() > 0);
        debug_assert!(self.allocated_pages >= before, "more pages are held than allocated");
        self.allocated_pages -= before - self.held_pages.len();
    }

    /// Returns the record at an address.
    #[inline]
    pub(crate) fn record(&self, address: Address) -> Record<'_> {
        match self.record_at(address) {
            Some(record) => record,
            None => unreachable!("no record at {address:?}"),
        }
    }

    #[inline]
    fn record_at(&self, address: Address) -> Option<Record<'_>> {
        self.pages.get(address.page as usize)?.record_at(address.offset)
    }

    /// Returns key and value of a record, for a reader to keep.
    pub(crate) fn share(&self, address: Address) -> Bytes {
        self.share_record(address, &self.record(address))
    }

    /// Does the same for a caller that has read the record at this address already.
    #[inline]
    pub(crate) fn share_record(&self, address: Address, record: &Record<'_>) -> Bytes {
        let start = address.offset as usize + HEADER_BYTES;
        let end = start + record.key.len() + record.value.len();
        match &self.pages[address.page as usize].contents {
            PageContents::Closed(written, _) => written.slice(start..end),
            PageContents::Open(region, _) => {
                if end - start >= LONG_COPY_BYTES
                    && let Some(open) = self.open.iter().find(|open| open.page == address.page)
                    && !open.was_copied.load(Ordering::Relaxed)
                {
                    open.was_copied.store(true, Ordering::Relaxed);
                }
                Bytes::copy_from_slice(&region[start..end])
            }
            PageContents::Vacant => Bytes::new(),
        }
    }

    /// Returns whether [`Log::share`] copies this record.
    pub(crate) fn is_copied(&self, address: Address) -> bool {
        self.open.iter().any(|open| open.page == address.page)
    }

    /// Returns the value at an address for a change in place. `None` if its page is full.
    pub(crate) fn value_mut(&mut self, address: Address) -> Option<&mut [u8]> {
        let record = self.record(address);
        let start = address.offset as usize + HEADER_BYTES + record.key.len();
        let end = start + record.value.len();
        match &mut self.pages[address.page as usize].contents {
            PageContents::Open(region, _) => region.get_mut(start..end),
            _ => None,
        }
    }

    /// Returns the full page with the most bytes of holes.
    pub(crate) fn emptiest(&self) -> Option<u32> {
        let holes = |page: &LogPage| page.written().len() - page.live_bytes;
        let full = self
            .pages
            .iter()
            .enumerate()
            .filter(|(_, page)| matches!(page.contents, PageContents::Closed(..)));
        let (page_number, page) = full.max_by_key(|(_, page)| holes(page))?;
        (holes(page) > 0).then_some(page_number as u32)
    }

    /// Lists slot and address of all records in a page, needed or not.
    pub(crate) fn records(&self, page: u32) -> Vec<(u32, Address)> {
        let mut records = Vec::new();
        let mut offset = 0;
        while let Some(record) = self.record_at(Address { page, offset }) {
            records.push((record.slot, Address { page, offset }));
            offset += record.bytes() as u32;
        }
        records
    }

    /// Copies a record to the page of moved records and releases the old one.
    pub(crate) fn relocate(&mut self, from: Address) -> Address {
        let record = self.record(from);
        let (slot, key_len) = (record.slot, record.key.len());
        // This is a slice of a full page and not a copy.
        let content = self.share(from);
        let (key, value) = content.split_at(key_len);
        let to = self.append_to(Fill::Moved, slot, key, value);
        drop(content);
        self.release(from);
        to
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
