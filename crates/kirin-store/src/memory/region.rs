//! Memory for pages and large values, mapped directly from the system.
//!
//! An allocator keeps freed memory for itself, at least for a while, and splits large blocks when
//! sizes change. A mapping goes back to the system when it is dropped. So resident memory follows
//! the budget, whichever allocator the program uses.
//!
//! A mapping costs a few microseconds. It is made once for a page of hundreds of items, or once for
//! a large value.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use memmap2::{MmapMut, MmapOptions};

use crate::memory::size_class::allocated_bytes;

/// The size in bytes from which a region is a mapping of its own.
pub(crate) const MAPPED_FLOOR_BYTES: usize = 16 << 10;

/// The most mappings in this process. Linux allows 65,530 in a process (`vm.max_map_count`), and
/// the rest of the program needs some. Above this limit the heap is used.
const MAPPED_LIMIT: usize = 30_000;

const SYSTEM_PAGE_BYTES: usize = 4096;

/// The bytes that a reference-counted owner allocates beside its region.
const OWNER_BYTES: usize = 64;

/// The number of mappings in this process.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A block of memory.
#[derive(Debug)]
pub(crate) enum Region {
    Mapped(CountedMapping),
    Heap(Box<[u8]>),
}

/// A mapping that is counted in [`MAPPED`].
#[derive(Debug)]
pub(crate) struct CountedMapping(MmapMut);

impl Drop for CountedMapping {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Region {
    /// Allocates `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Region {
        if len < MAPPED_FLOOR_BYTES {
            return Region::Heap(vec![0; len].into_boxed_slice());
        }
        if MAPPED.fetch_add(1, Ordering::Relaxed) < MAPPED_LIMIT
            // The caller writes all of it at once. One page fault now is cheaper than one for each
            // system page.
            && let Ok(map) = MmapOptions::new().len(len).populate().map_anon()
        {
            return Region::Mapped(CountedMapping(map));
        }
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        Region::Heap(vec![0; len].into_boxed_slice())
    }

    /// Returns a copy of `value` that can be shared.
    pub(crate) fn copy_of(value: &[u8]) -> Bytes {
        let mut region = Region::zeroed(value.len());
        region.copy_from_slice(value);
        Bytes::from_owner(region)
    }
}

/// Returns the bytes that a region of `len` bytes takes from the budget.
pub(crate) fn region_bytes(len: usize) -> usize {
    let block = if len < MAPPED_FLOOR_BYTES {
        allocated_bytes(len)
    } else {
        len.next_multiple_of(SYSTEM_PAGE_BYTES)
    };
    block + OWNER_BYTES
}

impl Deref for Region {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Region::Mapped(CountedMapping(map)) => map,
            Region::Heap(block) => block,
        }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Region::Mapped(CountedMapping(map)) => map,
            Region::Heap(block) => block,
        }
    }
}

impl AsRef<[u8]> for Region {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_of_any_size_hold_what_was_copied() {
        for len in [0, 1, 100, MAPPED_FLOOR_BYTES - 1, MAPPED_FLOOR_BYTES, 100_000] {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let copy = Region::copy_of(&value);
            assert_eq!(copy, value, "{len} bytes");
            assert!(region_bytes(len) >= len);
        }
    }

    #[test]
    fn beyond_the_limit_of_mappings_memory_comes_from_the_heap() {
        let regions: Vec<Region> =
            (0..MAPPED_LIMIT + 10).map(|_| Region::zeroed(MAPPED_FLOOR_BYTES)).collect();
        assert!(matches!(regions[0], Region::Mapped(_)));
        assert!(matches!(regions[MAPPED_LIMIT + 9], Region::Heap(_)));
        drop(regions);
        assert!(matches!(Region::zeroed(MAPPED_FLOOR_BYTES), Region::Mapped(_)));
    }
}
