//! Limits that all machines with one origin count together (`shared = true`).
//!
//! No request waits for the origin. A machine decides by its own buckets, and sends what it has let
//! pass behind the back of the requests. The origin answers with what each bucket lacks by all
//! machines together, and this machine takes that over. So machines learn of each other afterwards,
//! and together let more pass than one bucket does.
//!
//! # How much passes
//!
//! Let `B` be the burst, `r` the rate, `M` the number of machines, and `E` the longest time from a
//! request on a machine until that machine has the answer to the exchange with it. Of one key, all
//! machines together let pass in any time `t` at most
//!
//! ```text
//! B + r t + (M - 1) (B + r E)
//! ```
//!
//! For each machine, take its last request that passes, and the last answer that it had before. Let
//! `a` be the machine whose answer is the latest by the time of the origin. Which requests of
//! another machine does that answer lack? Only those that were sent later, so the other machine
//! had no answer about them at its last request. They are within `E`, and its own bucket lets at
//! most `B + r E` of them pass. All other requests are in the bucket of `a`, which lacked at most
//! `B` at its last request. So at each request that passes, one bucket for all requests would lack
//! at most `B + (M - 1) (B + r E)`, and in the time `t` it becomes fuller by `r t`.
//!
//! This needs that the origin forgives nothing: what a bucket lacks beyond `B` is paid back.
//! Without that, each machine could let pass again and again what one of them may.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kirin_origin::{BucketName, StoreOrigin};
use tokio::runtime::Handle;

use super::rate_limit::RateLimit;
use super::rate_limit_buckets::TooMany;

/// The shortest time between two exchanges of a limit with the origin.
pub(super) const EXCHANGE_INTERVAL: Duration = Duration::from_millis(250);

/// What a shared limit needs to be counted together with those of other machines.
#[derive(Default)]
pub(super) struct Sharing {
    /// The name of the limit on the origin, which is the same on all machines.
    name: OnceLock<String>,
    origin: OnceLock<Arc<StoreOrigin>>,
    /// Whether a task exchanges with the origin.
    is_exchanging: AtomicBool,
}

impl Sharing {
    /// Sets the name of the limit on the origin. It counts once.
    pub fn set_name(&self, name: String) {
        _ = self.name.set(name);
    }

    /// Returns the name of the limit on the origin.
    pub fn name(&self) -> Option<&str> {
        self.name.get().map(String::as_str)
    }

    /// Counts on this origin from now on.
    pub fn set_origin(&self, origin: &Arc<StoreOrigin>) {
        _ = self.origin.set(Arc::clone(origin));
    }

    /// Returns the name and the origin, if the limit can be counted there now.
    fn connected(&self) -> Option<(&str, &Arc<StoreOrigin>)> {
        let origin = self.origin.get().filter(|origin| origin.is_connected())?;
        Some((self.name()?, origin))
    }
}

impl RateLimit {
    /// Takes a request from the bucket of a key at once, and lets the origin know later. While the
    /// origin is away, the request counts on this machine alone.
    pub(super) fn take_shared(
        self: &Arc<Self>,
        sharing: &Sharing,
        hash: u64,
        now: u64,
        bucket: impl FnOnce() -> BucketName,
    ) -> Result<(), TooMany> {
        let Some((name, origin)) = sharing.connected() else {
            return self.buckets.take(hash, now);
        };
        self.buckets.take_shared(hash, now, bucket)?;
        if !sharing.is_exchanging.load(Ordering::SeqCst)
            && let Ok(runtime) = Handle::try_current()
            && !sharing.is_exchanging.swap(true, Ordering::SeqCst)
        {
            runtime.spawn(Arc::clone(self).exchange(name.to_owned(), Arc::clone(origin)));
        }
        Ok(())
    }

    /// Exchanges with the origin until there is nothing to send.
    async fn exchange(self: Arc<Self>, name: String, origin: Arc<StoreOrigin>) {
        let Some(sharing) = &self.sharing else { return };
        loop {
            while self.buckets.have_unsent() {
                let next = tokio::time::Instant::now() + EXCHANGE_INTERVAL;
                self.exchange_once(&name, &origin).await;
                tokio::time::sleep_until(next).await;
            }
            sharing.is_exchanging.store(false, Ordering::SeqCst);
            // A request may have come before that, and relied on this task.
            if !self.buckets.have_unsent() || sharing.is_exchanging.swap(true, Ordering::SeqCst) {
                return;
            }
        }
    }

    async fn exchange_once(&self, name: &str, origin: &StoreOrigin) {
        let sent = self.buckets.take_unsent();
        let added: Vec<_> = sent.iter().map(|sent| (sent.name, sent.lacking_micros)).collect();
        match origin.count(name, self.buckets.full_micros(), &added).await {
            Ok(lacking) => {
                let now = self.buckets.time(Instant::now());
                for (sent, lacking) in sent.iter().zip(lacking) {
                    self.buckets.learn(sent.hash, lacking, now);
                }
            }
            // They are not sent again: some may have been added. On this machine they count.
            Err(error) => tracing::debug!(%error, "requests of a limit count here alone"),
        }
    }
}

#[cfg(test)]
#[path = "rate_limit_sharing_tests.rs"]
mod tests;
