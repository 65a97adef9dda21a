//! Turns of callers that want the same key.

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

/// In how many groups keys take turns.
const GROUPS: usize = 2048;

/// Lets one caller of each group of keys go on at a time.
pub(crate) struct Turns(Box<[Mutex<()>]>);

/// The turn of a caller. It ends when this is dropped.
pub(crate) type Turn<'a> = MutexGuard<'a, ()>;

impl Default for Turns {
    fn default() -> Self {
        Self((0..GROUPS).map(|_| Mutex::default()).collect())
    }
}

impl Turns {
    /// Waits for a turn. Returns `None` after `limit`.
    pub(crate) async fn turn(&self, key: &[u8], limit: Duration) -> Option<Turn<'_>> {
        let sum = key.iter().fold(0usize, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte));
        let turn = self.0.get(sum % GROUPS)?.lock();
        tokio::time::timeout(limit, turn).await.ok()
    }
}
