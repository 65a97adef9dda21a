//! Announces this machine at the origin as long as it serves.

use std::pin::pin;
use std::time::Duration;

use kirin_origin::{OriginError, StoreOrigin, jitter};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::card::MachineCard;
use super::{MOST_MACHINES, Machines};
use crate::stage::{Stage, drain_limit, wait_to_serve};

/// How long a machine counts after it has died.
const LASTING: Duration = Duration::from_secs(15);

/// The longest time between two announcements.
const RENEWAL: Duration = Duration::from_secs(6);

/// The pause after an announcement that has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// How long an answer waits for the names or the number of the machines.
const NAMES_WAIT: Duration = Duration::from_millis(200);

impl Machines {
    /// Announces this machine from the moment it serves until it drains.
    pub async fn announce(&self, mut stage: watch::Receiver<Stage>) {
        let card = self.card.text();
        if wait_to_serve(&mut stage).await {
            let mut end = pin!(drain_limit(stage));
            let mut is_warned = false;
            loop {
                let announcing = async {
                    let announced = self.origin.announce_machine(card.as_bytes(), LASTING).await;
                    sleep(self.pause_after(&announced, &mut is_warned)).await;
                };
                tokio::select! {
                    () = announcing => {}
                    _ = &mut end => break,
                }
            }
            // Without the origin, the time of this machine ends by itself.
            let _ = self.origin.withdraw_machine(card.as_bytes()).await;
        }
        self.has_left.send_replace(true);
    }

    /// Returns the time until the next announcement.
    fn pause_after(&self, announced: &Result<(), OriginError>, is_warned: &mut bool) -> Duration {
        match announced {
            Ok(()) => RENEWAL.mul_f64(jitter()),
            // As a rule, the user of the origin may not use a command.
            Err(OriginError::Refused(reason)) => {
                if !std::mem::replace(is_warned, true) {
                    tracing::warn!(reason, "the other machines do not see this one");
                }
                RENEWAL
            }
            Err(_) => PAUSE,
        }
    }

    /// Waits until this machine is announced no more.
    pub async fn left(&self) {
        // The sender is a part of this.
        let _ = self.has_left.subscribe().wait_for(|has_left| *has_left).await;
    }

    /// Returns the names of the machines, or `None` if the origin does not answer soon.
    pub async fn names(&self) -> Option<Vec<String>> {
        let cards = timeout(NAMES_WAIT, self.origin.machines(MOST_MACHINES)).await;
        Some(super::card::names(&sorted(cards.ok()?.ok()?)))
    }
}

/// Returns how many machines have an origin, or `None` if it does not answer soon.
pub async fn count_machines(origin: &StoreOrigin) -> Option<u64> {
    timeout(NAMES_WAIT, origin.count_machines()).await.ok()?.ok()
}

/// Reads cards and sorts them as people expect.
pub(super) fn sorted(cards: Vec<impl AsRef<[u8]>>) -> Vec<MachineCard> {
    let cards = cards.iter().filter_map(|card| MachineCard::parse(card.as_ref()));
    let mut cards: Vec<_> = cards.collect();
    cards.sort_by(|a, b| (&a.host, a.pid, &a.id).cmp(&(&b.host, b.pid, &b.id)));
    cards
}
