//! What the main thread does while the event loops serve: it does what signals ask for.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use kirin_store::Store;
use kirin_workers::App;
use tokio::sync::Notify;

use crate::config::check::Site;
use crate::life::signals::{End, Signals, Wish};
use crate::life::systemd::Systemd;
use crate::life::upgrade::{Upgrade, UpgradeError};
use crate::serve::logs::{self, Logs};

/// Gives the process id of the program that has taken over.
type Upgrading<'a> = Pin<Box<dyn Future<Output = Result<u32, UpgradeError>> + 'a>>;

/// How serving comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By a signal.
    Signal(End),
    /// Another process serves.
    Successor(u32),
}

/// What signals have an effect on.
pub struct Serving<'a> {
    /// The configuration.
    pub site: &'a Site,
    /// The applications.
    pub apps: &'a [Arc<App>],
    /// The access logs.
    pub logs: &'a Logs,
    /// The store.
    pub store: &'a Arc<Store>,
    /// Wakes those who wait for an authority's certificate.
    pub ask_again: &'a Notify,
    /// Who wants to know.
    pub systemd: &'a Systemd,
    /// How to upgrade, or why that cannot be.
    pub upgrade: Result<Upgrade, String>,
}

impl Serving<'_> {
    /// Does what signals ask for until one asks to end, or another program has taken over.
    pub async fn do_wishes(&self, signals: &mut Signals) -> Ending {
        let mut upgrading: Option<Upgrading<'_>> = None;
        loop {
            let upgraded = async {
                match &mut upgrading {
                    Some(upgrading) => upgrading.await,
                    None => pending().await,
                }
            };
            let wish = tokio::select! {
                wish = signals.next() => wish,
                upgraded = upgraded => match upgraded {
                    Ok(pid) => return Ending::Successor(pid),
                    Err(error) => {
                        tracing::error!(%error, "upgrade failed; this program keeps serving");
                        upgrading = None;
                        continue;
                    }
                },
            };
            match wish {
                Wish::End(end) => return Ending::Signal(end),
                Wish::Reload => self.reload(),
                Wish::MoreWorkers => self.apps.iter().for_each(|app| app.add_worker()),
                Wish::FewerWorkers => self.apps.iter().for_each(|app| app.remove_worker()),
                Wish::ReopenLogs => logs::reopen(self.logs),
                Wish::Upgrade => match &self.upgrade {
                    Err(reason) => tracing::error!("USR2 has no effect: {reason}"),
                    Ok(_) if upgrading.is_some() => {
                        tracing::warn!("USR2 has no effect: an upgrade is going on")
                    }
                    Ok(upgrade) => upgrading = Some(Box::pin(upgrade.hand_over(self.store))),
                },
            }
        }
    }

    fn reload(&self) {
        tracing::info!("reloading applications");
        self.systemd.reloading();
        self.apps.iter().for_each(|app| app.reload());
        self.reload_certificates();
        let (apps, systemd) = (self.apps.to_vec(), self.systemd.clone());
        tokio::spawn(async move {
            for app in apps {
                app.reloaded().await;
            }
            systemd.ready();
        });
    }

    /// Reads certificates again, and has those of authorities looked after. A listener whose files
    /// cannot be used keeps those that it has.
    fn reload_certificates(&self) {
        self.ask_again.notify_waiters();
        for listener in &self.site.listeners {
            let Some(site) = &listener.tls else { continue };
            match site.tls.reload() {
                Ok(()) if site.acme.is_some() => {}
                Ok(()) => tracing::info!("certificates of {} are read again", listener.address),
                Err(error) => {
                    tracing::error!(%error, "certificates of {} are not changed", listener.address)
                }
            }
        }
    }
}
