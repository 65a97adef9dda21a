//! The turn to order a certificate: of all Kirins with one state directory, and of all machines
//! that share the certificate, one at a time orders.

use std::fs::File;
use std::time::{Duration, SystemTime};

use kirin_origin::{Lease, LeaseAnswer};

use crate::error::AcmeError;
use crate::lifetime::Lifetime;
use crate::renewer::CertificateRenewer;
use crate::schedule;

/// The time between two looks whether another Kirin has ordered.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// How long a machine waits for the origin before it orders without it. A failover takes less.
const ALONE_AFTER: Duration = Duration::from_secs(30);

/// The turn to order. It ends when this is dropped, and soon after the program is killed.
pub struct Turn {
    _lock: File,
    _lease: Option<Lease>,
}

impl CertificateRenewer {
    /// Waits until no other Kirin orders a certificate from this authority. Returns `None` if one
    /// of them got the certificate meanwhile. It is served then.
    pub(crate) async fn turn(&mut self) -> Result<Option<Turn>, AcmeError> {
        let before = self.issued.as_ref().map(|issued| issued.der.clone());
        let mut is_logged = false;
        let lock = loop {
            if let Some(lock) = self.state.try_lock()? {
                break lock;
            }
            if !std::mem::replace(&mut is_logged, true) {
                tracing::info!(
                    "another Kirin asks {} for certificates; this one waits and uses what is in {}",
                    self.config.directory,
                    self.config.state.display()
                );
            }
            self.rest(Duration::ZERO, BETWEEN_LOOKS).await;
        };
        if self.serve_what_another_got() {
            return Ok(None);
        }
        let is_done = |renewer: &Self| {
            let issued = renewer.issued.as_ref();
            issued.is_some_and(|issued| Some(&issued.der) != before.as_ref())
                && !renewer.is_due(|lifetime| schedule::renewal(lifetime, 1.0))
        };
        let mut is_logged = false;
        loop {
            self.look().await;
            if is_done(self) {
                return Ok(None);
            }
            let Some(sharing) = &self.sharing else {
                return Ok(Some(Turn { _lock: lock, _lease: None }));
            };
            let trouble = sharing.trouble_since();
            if trouble.is_none_or(|since| self.may_order_alone(since.elapsed())) {
                match sharing.lease().await {
                    LeaseAnswer::Taken(lease) if trouble.is_some() => {
                        tracing::warn!(
                            "the certificate that machines share cannot be had; ordering one without the others"
                        );
                        return Ok(Some(Turn { _lock: lock, _lease: Some(lease) }));
                    }
                    // The connection has just ended.
                    LeaseAnswer::Taken(lease) if lease.is_none() => {}
                    LeaseAnswer::Taken(lease) => {
                        // The holder before may have got it since the look.
                        self.look().await;
                        let turn = Turn { _lock: lock, _lease: Some(lease) };
                        return Ok((!is_done(self)).then_some(turn));
                    }
                    LeaseAnswer::Elsewhere | LeaseAnswer::Useless => {
                        if !std::mem::replace(&mut is_logged, true) {
                            tracing::info!(
                                "another machine asks {} for certificates; this one waits and uses what it gets",
                                self.config.directory
                            );
                        }
                    }
                }
            }
            self.rest(Duration::ZERO, BETWEEN_LOOKS).await;
        }
    }

    /// Returns whether the certificate cannot wait any longer for an origin that has been away for
    /// this time.
    fn may_order_alone(&self, away: Duration) -> bool {
        away >= ALONE_AFTER && self.is_due(schedule::renewal_alone)
    }

    /// Returns whether there is no certificate for the names, or the one that is served has passed
    /// the time that `limit` gives it.
    fn is_due(&self, limit: fn(Lifetime) -> SystemTime) -> bool {
        let issued = self.issued.as_ref().filter(|issued| issued.is_for(&self.config.domains));
        issued.is_none_or(|issued| limit(issued.lifetime) <= SystemTime::now())
    }
}
