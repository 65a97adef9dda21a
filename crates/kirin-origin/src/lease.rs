//! Leases: of all machines, one at a time makes what is under a key.
//!
//! A lease is a key on the server that expires soon, unless its holder renews it. So it ends when
//! its holder dies. It saves work, and nothing else: that two machines make the same is right, too.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::Value;
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::engine_scripts::LEASE;
use crate::error::OriginError;
use crate::near_store::NearStore;
use crate::origin::StoreOrigin;
use crate::random::random_name;

/// How long a lease lasts after its holder has died.
const LASTING: Duration = Duration::from_secs(3);

/// The time between two renewals.
const RENEWAL: Duration = Duration::from_secs(1);

/// How long the others do not wait for each other after a lease was of no use for them.
const USELESS: Duration = Duration::from_secs(1);

/// The answer to the wish for a lease.
#[derive(Debug)]
pub enum LeaseAnswer {
    /// This machine has it. So it is without a server, or if the server does not answer.
    Taken(Lease),
    /// Another machine has it.
    Elsewhere,
    /// Another machine had it a moment ago, and what it has made is of no use for others.
    Useless,
}

/// A lease of this machine. It ends when its last clone is dropped.
#[derive(Clone, Debug, Default)]
pub struct Lease(Option<Arc<Held>>);

#[derive(Debug)]
struct Held {
    origin: Arc<StoreOrigin>,
    name: Vec<u8>,
    holder: String,
    end: AtomicU8,
}

/// How a lease ends, in [`Held::end`].
const OPEN: u8 = 0;
const AS_USELESS: u8 = 1;
const ENDED: u8 = 2;

impl Lease {
    /// Returns whether this is no lease of a server.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Ends the lease: what it was for is on the server.
    pub fn release(&self) {
        if let Some(held) = &self.0 {
            held.end_once();
        }
    }

    /// Notes that others do not wait for what is made under the lease: it is of no use for them.
    pub fn note_useless(&self) {
        if let Some(held) = &self.0 {
            let _ =
                held.end.compare_exchange(OPEN, AS_USELESS, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

impl Held {
    /// Ends the lease behind the caller's back, if it has not ended.
    fn end_once(&self) {
        let word = match self.end.swap(ENDED, Ordering::Relaxed) {
            OPEN => "end",
            AS_USELESS => "useless",
            _ => return,
        };
        // Without a runtime the process ends, and the lease expires.
        let Ok(runtime) = Handle::try_current() else { return };
        let (origin, name) = (Arc::clone(&self.origin), self.name.clone());
        let holder = self.holder.clone();
        runtime.spawn(async move {
            // It expires anyway.
            let _ = origin.change_lease(word, &name, &holder, USELESS).await;
        });
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.end_once();
    }
}

impl NearStore {
    /// Takes the lease for what is made under a key, if no machine has it. Takes one trip.
    pub async fn lease(&self, key: &[u8]) -> LeaseAnswer {
        match &self.origin {
            Some(origin) => origin.lease(key).await,
            None => LeaseAnswer::Taken(Lease::default()),
        }
    }

    /// Claims the right to do something once within `lasting` on all machines. Returns whether this
    /// machine has it. So it has without a server, or if the server does not answer. Takes one
    /// trip.
    pub async fn claim(&self, key: &[u8], lasting: Duration) -> bool {
        let Some(origin) = &self.origin else { return true };
        origin.claim(&origin.config.names.lease(key), lasting).await.unwrap_or(true)
    }
}

/// Renews a lease until it ends.
async fn renew(held: Weak<Held>) {
    loop {
        sleep(RENEWAL).await;
        let Some(held) = held.upgrade() else { return };
        if held.end.load(Ordering::Relaxed) == ENDED {
            return;
        }
        // If another machine has it by now, both make the same.
        let _ = held.origin.change_lease("renew", &held.name, &held.holder, LASTING).await;
    }
}

impl StoreOrigin {
    /// Takes a lease, as [`NearStore::lease`] does.
    pub async fn lease(self: &Arc<Self>, key: &[u8]) -> LeaseAnswer {
        let (name, holder) = (self.config.names.lease(key), random_name());
        match self.change_lease("take", &name, &holder, LASTING).await {
            Ok(0) => LeaseAnswer::Elsewhere,
            Ok(2) => LeaseAnswer::Useless,
            Ok(_) => {
                let origin = Arc::clone(self);
                let held = Arc::new(Held { origin, name, holder, end: AtomicU8::new(OPEN) });
                tokio::spawn(renew(Arc::downgrade(&held)));
                LeaseAnswer::Taken(Lease(Some(held)))
            }
            Err(error) => {
                tracing::debug!(%error, "no lease can be had");
                LeaseAnswer::Taken(Lease::default())
            }
        }
    }

    /// Makes a lease that nobody renews or ends. Returns whether there was none.
    async fn claim(&self, name: &[u8], lasting: Duration) -> Result<bool, OriginError> {
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let mut command = redis::cmd("SET");
        command.arg(name).arg("").arg("NX").arg("PX").arg(lasting.as_millis() as u64);
        let reply = servers.of(name).ask(&command).await.map_err(|error| self.failed(error))?;
        Ok(reply != Value::Nil)
    }

    async fn change_lease(
        &self,
        word: &str,
        name: &[u8],
        holder: &str,
        lasting: Duration,
    ) -> Result<i64, OriginError> {
        let servers = self.servers()?;
        let _permit = self.permit()?;
        let milliseconds = lasting.as_millis().to_string();
        let arguments = [word.as_bytes(), holder.as_bytes(), milliseconds.as_bytes()];
        let answer = servers.of(name).run(LEASE, &[name.to_vec()], &arguments).await;
        let answer = answer.map_err(|error| self.failed(error))?;
        Ok(answer.first().copied().unwrap_or_default())
    }
}
