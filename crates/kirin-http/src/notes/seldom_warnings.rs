//! Warnings that may be true for every request, and are logged now and then.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The shortest time between two warnings of one kind.
const INTERVAL: Duration = Duration::from_secs(10);

/// The last warnings of each kind, on one event loop.
#[derive(Default)]
pub struct SeldomWarnings(RefCell<HashMap<&'static str, Instant>>);

impl SeldomWarnings {
    /// Logs a warning by `say`, unless one of this kind was logged a short time ago.
    pub fn warn(&self, kind: &'static str, say: impl FnOnce()) {
        let now = Instant::now();
        let last = self.0.borrow().get(kind).copied();
        if last.is_none_or(|last| now.duration_since(last) >= INTERVAL) {
            self.0.borrow_mut().insert(kind, now);
            say();
        }
    }
}
