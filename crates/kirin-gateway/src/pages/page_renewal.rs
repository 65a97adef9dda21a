//! Decides when a stale page is renewed. The `store` place asks for pages that have been purged
//! softly.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use kirin_origin::NearStore;
use kirin_store::{ItemRef, Now};

/// The time in seconds in which only one request may be sent to renew a page. The application may
/// have a reason not to store the response, such as a signed-in visitor.
const WAIT_SECONDS: u64 = 5;

/// The last request that may renew a stale page. It is kept beside the page, so that all event
/// loops share it.
#[derive(Debug, Default)]
pub struct PageRenewal {
    /// The second at which the last request was sent; 0 for never.
    asked: AtomicU64,
}

impl PageRenewal {
    /// Returns whether this request must go to the place that made the page, as far as this machine
    /// knows. The result is true for one request, and then false for all others for `WAIT_SECONDS`.
    pub fn is_due(&self, now: Now) -> bool {
        let (now, asked) = (now.unix_seconds(), self.asked.load(Relaxed));
        let is_over = asked == 0 || now.saturating_sub(asked) >= WAIT_SECONDS;
        is_over && self.asked.compare_exchange(asked, now, Relaxed, Relaxed).is_ok()
    }
}

/// Returns whether this machine renews a stale page, of all that share it with `near`.
pub async fn is_of_this_machine(near: &NearStore, item: &ItemRef) -> bool {
    // Another page under the key is another renewal.
    let claim = [b"renewal ", &item.cas().to_be_bytes()[..], item.key()].concat();
    near.claim(&claim, Duration::from_secs(WAIT_SECONDS)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_is_due_again_after_five_seconds_without_a_new_page() {
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
