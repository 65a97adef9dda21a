//! The real cost of an allocation.

/// Returns the bytes that the allocator uses for a request of `len` bytes. It rounds up to size
/// classes, four for each doubling, as in mimalloc and jemalloc. The budget counts the rounded
/// size.
pub(crate) fn allocated_bytes(len: usize) -> usize {
    match len {
        0 => 0,
        1..=128 => len.next_multiple_of(16),
        _ => len.next_multiple_of(len.next_power_of_two() / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_allocators_round_them() {
        let table = [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (64, 64),
            (65, 80),
            (128, 128),
            (129, 160),
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
