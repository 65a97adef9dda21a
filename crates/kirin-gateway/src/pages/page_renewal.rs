//! When a page that has been purged softly is asked for behind the store. Called by the `store`
//! place for stale pages.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kirin_store::Now;

/// How long a request that was to renew a page keeps others from being sent after it. The
/// application may have had its reasons not to store the answer, such as a visitor who is signed
/// in.
const WAIT_SECONDS: u64 = 5;

/// Who is to renew a stale page. Kept beside the page, so that all event loops have the same.
#[derive(Debug, Default)]
pub struct PageRenewal {
    /// When the last request was sent; 0 for never.
    asked: AtomicU64,
}

impl PageRenewal {
    /// Whether this request is to go where the page comes from. To all others, the answer is no for
    /// a while.
    pub fn is_due(&self, now: Now) -> bool {
        let (now, asked) = (now.unix_seconds(), self.asked.load(Relaxed));
        let is_over = asked == 0 || now.saturating_sub(asked) >= WAIT_SECONDS;
        is_over && self.asked.compare_exchange(asked, now, Relaxed, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_goes_and_another_if_nothing_has_come_of_it() {
        let renewal = PageRenewal::default();
        let start = 1_700_000_000;
        let due: Vec<u64> = (start..start + 12)
            .filter(|now| renewal.is_due(Now::from_unix_seconds(*now)))
            .collect();
        assert_eq!(due, [start, start + 5, start + 10]);
        assert!(!renewal.is_due(Now::from_unix_seconds(start + 10)), "the same moment");
        assert!(!renewal.is_due(Now::from_unix_seconds(start)), "a clock that was put back");
    }
}
