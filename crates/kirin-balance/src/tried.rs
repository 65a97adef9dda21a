//! The servers at which a request has been tried.

/// A set of server indices below [`TriedServers::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriedServers(u128);

impl TriedServers {
    /// The most servers of one upstream.
    pub const MAX: usize = 128;

    /// Adds `index`.
    pub fn add(&mut self, index: usize) {
        self.0 |= u32::try_from(index).ok().and_then(|index| 1u128.checked_shl(index)).unwrap_or(0);
    }

    /// Returns whether `index` is in the set.
    pub fn has(self, index: usize) -> bool {
        u32::try_from(index)
            .ok()
            .and_then(|index| self.0.checked_shr(index))
            .is_some_and(|bits| bits & 1 == 1)
    }

    /// Returns how many indices are in the set.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_has_the_added_servers_and_no_others() {
        let mut tried = TriedServers::default();
        for index in [0, 1, 127, 127, 128, usize::MAX] {
            tried.add(index);
        }
        let found: Vec<usize> = (0..300).filter(|index| tried.has(*index)).collect();
        assert_eq!(found, [0, 1, 127]);
        assert_eq!(tried.count(), 3);
    }
}
