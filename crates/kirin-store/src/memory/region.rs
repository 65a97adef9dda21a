//! Memory for pages and large values, straight from the system.
//!
//! An allocator keeps what is freed for itself, for a while or for good, and cuts large blocks to
//! pieces when sizes shift. A mapping of its own goes back to the system when it is dropped:
//! resident memory is then what the budget says, whichever allocator the program uses. Mapping and
//! unmapping costs a few microseconds, once a page of hundreds of items or once a large value.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use memmap2::{MmapMut, MmapOptions};

use crate::memory::size_class::allocated_bytes;

/// From this size on a region is a mapping of its own.
pub(crate) const MAPPED_FLOOR_BYTES: usize = 16 << 10;

/// Mappings at one time in this process. Linux allows one 65,530 (`vm.max_map_count`) and the rest
/// of the program needs some; past this the allocator has to do.
const MAPPED_LIMIT: usize = 30_000;

const SYSTEM_PAGE_BYTES: usize = 4096;

/// What counting references to a region allocates beside it.
const OWNER_BYTES: usize = 64;

/// Mappings there are.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// A block of memory.
#[derive(Debug)]
pub(crate) enum Region {
    Mapped(Mapping),
    Heap(Box<[u8]>),
}

/// A mapping that is counted.
#[derive(Debug)]
pub(crate) struct Mapping(MmapMut);

impl Drop for Mapping {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Region {
    /// `len` zeros.
    pub(crate) fn zeroed(len: usize) -> Region {
        if len < MAPPED_FLOOR_BYTES {
            return Region::Heap(vec![0; len].into_boxed_slice());
        }
        if MAPPED.fetch_add(1, Ordering::Relaxed) < MAPPED_LIMIT
            // All of it is about to be written: one fault now is cheaper than one a system page.
            && let Ok(map) = MmapOptions::new().len(len).populate().map_anon()
        {
            return Region::Mapped(Mapping(map));
        }
        MAPPED.fetch_sub(1, Ordering::Relaxed);
        Region::Heap(vec![0; len].into_boxed_slice())
    }

    /// A copy of `value` that can be shared.
    pub(crate) fn copy_of(value: &[u8]) -> Bytes {
        let mut region = Region::zeroed(value.len());
        region.copy_from_slice(value);
        Bytes::from_owner(region)
    }
}

/// What a region of `len` bytes takes from the budget.
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
            Region::Mapped(Mapping(map)) => map,
            Region::Heap(block) => block,
        }
    }
}

impl DerefMut for Region {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Region::Mapped(Mapping(map)) => map,
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
    fn past_the_limit_of_mappings_the_heap_serves() {
        let regions: Vec<Region> =
            (0..MAPPED_LIMIT + 10).map(|_| Region::zeroed(MAPPED_FLOOR_BYTES)).collect();
        assert!(matches!(regions[0], Region::Mapped(_)));
        assert!(matches!(regions[MAPPED_LIMIT + 9], Region::Heap(_)));
        drop(regions);
        assert!(matches!(Region::zeroed(MAPPED_FLOOR_BYTES), Region::Mapped(_)));
    }
}
