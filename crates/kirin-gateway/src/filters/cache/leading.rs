//! Which of several machines asks its place, if all of them miss the same response.
//!
//! It has a lease on the server behind the stores ([`kirin_origin::Lease`]). The others wait as
//! requests on one machine wait for each other, and go on by themselves if that takes too long.

use std::time::Duration;

use kirin_http::Response;
use kirin_origin::LeaseAnswer;
use kirin_store::Now;
use tokio::time::{Instant, sleep};

use super::fetch::CacheFetch;
use super::memory::CacheEntry;
use super::pending_fetches::PendingFetch;

/// The time between two looks whether the other machine has stored the response.
const LOOK_AT_STORE: Duration = Duration::from_millis(5);

/// The time between two looks whether the other machine still has the lease.
const LOOK_AT_LEASE: Duration = Duration::from_millis(200);

impl CacheFetch {
    /// Waits while another machine asks its place for the same response, up to `give_up`. Returns
    /// the response if it is stored by then. Otherwise this machine asks the place.
    pub(super) async fn lead(
        &mut self,
        pending: &mut PendingFetch,
        give_up: Instant,
        mut collapsed: bool,
    ) -> Option<Response> {
        loop {
            self.load().await;
            if let Some(response) = self.found_by_now(collapsed) {
                return Some(response);
            }
            if self.cache.near.origin().is_none() || !pending.lease.is_none() {
                return None;
            }
            let key = self.expected_key();
            match self.cache.near.lease(&key).await {
                // Another machine may have stored it before this one got the lease.
                LeaseAnswer::Taken(lease) if lease.is_none() => return None,
                LeaseAnswer::Taken(lease) => pending.lease = lease,
                LeaseAnswer::Useless => return None,
                LeaseAnswer::Elsewhere if Instant::now() >= give_up => return None,
                LeaseAnswer::Elsewhere => {
                    collapsed = true;
                    self.wait_for_change(&key, give_up).await;
                }
            }
        }
    }

    /// Returns whether this machine may renew a stale response: no other one does so.
    pub(super) async fn may_renew(&self, pending: &mut PendingFetch) -> bool {
        match self.cache.near.lease(&self.key).await {
            LeaseAnswer::Elsewhere => false,
            LeaseAnswer::Useless => true,
            LeaseAnswer::Taken(lease) => {
                pending.lease = lease;
                true
            }
        }
    }

    /// Waits until the server has told that something is stored under a key, but no longer than
    /// until the lease may have expired.
    async fn wait_for_change(&self, key: &[u8], give_up: Instant) {
        let until = give_up.min(Instant::now() + LOOK_AT_LEASE);
        while Instant::now() < until {
            sleep(LOOK_AT_STORE).await;
            if self.cache.near.is_unknown(key, Now::on_steady_clock()) {
                return;
            }
        }
    }

    /// Returns the key under which the response would be stored, as far as is known.
    fn expected_key(&self) -> Vec<u8> {
        match self.find() {
            CacheEntry::Nothing { key, .. } | CacheEntry::Pass { key, .. } => key,
            CacheEntry::Response(found) => found.item.key().to_vec(),
        }
    }
}
