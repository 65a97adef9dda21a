//! One allocation for an item's key and value, and what such an allocation really costs.

use std::sync::Arc;

/// Key and value of one item, key first, behind one reference count.
pub(crate) type Blob = Arc<[u8]>;

/// The two counts that `Arc` keeps before its contents.
const ARC_HEADER_BYTES: usize = 16;

/// Joins `parts` in one allocation.
pub(crate) fn join(parts: &[&[u8]]) -> Blob {
    let len = parts.iter().map(|part| part.len()).sum();
    // `collect` sizes the allocation once because the iterator knows its length; filling with
    // zeros first is the price for building an `Arc<[u8]>` in place without `unsafe`.
    let mut blob: Blob = std::iter::repeat_n(0, len).collect();
    if let Some(mut rest) = Arc::get_mut(&mut blob) {
        for part in parts {
            let (head, tail) = rest.split_at_mut(part.len());
            head.copy_from_slice(part);
            rest = tail;
        }
    }
    blob
}

/// What a blob of `len` bytes takes from the allocator.
pub(crate) fn blob_bytes(len: usize) -> usize {
    allocated_bytes(len + ARC_HEADER_BYTES)
}

/// What the allocator hands out for a request of `len` bytes: size classes, four to a doubling, as
/// mimalloc and jemalloc both have them. Counting the rounded size keeps the budget honest.
pub(crate) fn allocated_bytes(len: usize) -> usize {
    match len {
        0 => 0,
        1..=64 => len.next_multiple_of(16),
        _ => {
            let step = (len - 1).next_power_of_two().max(128) / 8;
            let step = if len > step * 8 { step * 2 } else { step };
            len.next_multiple_of(step)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_in_order() {
        assert_eq!(&*join(&[b"key", b"", b"value"]), b"keyvalue");
        assert_eq!(&*join(&[]), b"");
    }

    #[test]
    fn sizes_are_rounded_as_allocators_round_them() {
        let table = [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (64, 64),
            (65, 80),
            (80, 80),
            (81, 96),
            (113, 128),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (1024, 1024),
            (1025, 1280),
        ];
        for (len, want) in table {
            assert_eq!(allocated_bytes(len), want, "{len}");
        }
    }
}
