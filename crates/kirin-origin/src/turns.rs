//! Turns of callers that want the same key.

use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::sync::{Mutex, MutexGuard};

/// In how many groups keys take turns.
const GROUPS: usize = 2048;

/// Lets one caller of each group of keys go on at a time. Strangers choose keys, so the groups are
/// random ones: nobody can make others wait behind keys of his own.
pub(crate) struct Turns {
    groups: Box<[Mutex<()>]>,
    hasher: RandomState,
}

/// The turn of a caller. It ends when this is dropped.
pub(crate) type Turn<'a> = MutexGuard<'a, ()>;

impl Default for Turns {
    fn default() -> Self {
        let groups = (0..GROUPS).map(|_| Mutex::default()).collect();
        Self { groups, hasher: RandomState::default() }
    }
}

impl Turns {
    /// Waits for a turn. Returns `None` after `limit`.
    pub(crate) async fn turn(&self, key: &[u8], limit: Duration) -> Option<Turn<'_>> {
        let group = self.hasher.hash_one(key) % GROUPS as u64;
        let turn = self.groups.get(usize::try_from(group).ok()?)?.lock();
        tokio::time::timeout(limit, turn).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_that_are_chosen_to_be_alike_do_not_wait_for_each_other() {
        let turns = Turns::default();
        let _turn = turns.turn(b"AaAaAaAaAaAa", Duration::ZERO).await.expect("the first turn");
        // `Aa` and `BB` have the same sum in the hash of many languages.
        let keys = (0..64u32).map(|bits| -> String {
            (0..6).map(|place| if bits >> place & 1 == 0 { "Aa" } else { "BB" }).collect()
        });
        let mut waiting = 0;
        for key in keys {
            waiting += usize::from(turns.turn(key.as_bytes(), Duration::ZERO).await.is_none());
        }
        assert!((1..10).contains(&waiting), "{waiting} of 64 keys, one of them the same");
    }
}
