//! Control: the main thread carries out the commands of signals while the event loops serve.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use kirin_config::Config;
use kirin_observe::metrics::counters::ProgramCounters;
use kirin_store::Store;
use kirin_workers::App;
use tokio::sync::Notify;

use crate::life::ending::ProgramEnding;
use crate::life::signals::{SignalCommand, Signals};
use crate::life::systemd::Systemd;
use crate::life::upgrade::Upgrade;
use crate::life::upgrade_channel::UpgradeError;
use crate::serve::logs::{self, Logs};

/// An upgrade in progress. It returns the process id of the successor.
type UpgradeInProgress<'a> = Pin<Box<dyn Future<Output = Result<u32, UpgradeError>> + 'a>>;

/// The parts of the program on which commands have an effect.
pub struct Control<'a> {
    /// How to upgrade, or why the program cannot be upgraded.
    pub upgrade: Result<Upgrade, String>,
    /// The configuration.
    pub config: &'a Config,
    /// The applications.
    pub apps: &'a [Arc<App>],
    /// The access logs.
    pub logs: &'a Logs,
    /// The store.
    pub store: &'a Arc<Store>,
    /// Makes ACME ask for due certificates at once.
    pub renew_certificates: Arc<Notify>,
    /// The service manager.
    pub systemd: &'a Systemd,
    /// What is counted for metrics.
    pub counters: &'a ProgramCounters,
}

impl Control<'_> {
    /// Carries out commands until one ends the program, or a successor serves.
    pub async fn carry_out_commands(&self, signals: &mut Signals) -> ProgramEnding {
        let mut upgrade_in_progress: Option<UpgradeInProgress<'_>> = None;
        loop {
            let upgraded = async {
                match &mut upgrade_in_progress {
                    Some(upgrade) => upgrade.await,
                    None => pending().await,
                }
            };
            let command = tokio::select! {
                command = signals.next() => command,
                upgraded = upgraded => match upgraded {
                    Ok(pid) => return ProgramEnding::Succeeded(pid),
                    Err(error) => {
                        tracing::error!(%error, "upgrade failed; this program keeps serving");
                        self.counters.count_failed_upgrade();
                        upgrade_in_progress = None;
                        continue;
                    }
                },
            };
            match command {
                SignalCommand::Stop(stop) => return ProgramEnding::Stopped(stop),
                SignalCommand::Reload => self.reload(),
                SignalCommand::AddWorker => self.apps.iter().for_each(|app| app.add_worker()),
                SignalCommand::RemoveWorker => self.apps.iter().for_each(|app| app.remove_worker()),
                SignalCommand::ReopenLogs => logs::reopen(self.logs),
                SignalCommand::Upgrade => match &self.upgrade {
                    Err(reason) => tracing::error!("USR2 has no effect: {reason}"),
                    Ok(_) if upgrade_in_progress.is_some() => {
                        tracing::warn!("USR2 has no effect: an upgrade is going on")
                    }
                    Ok(upgrade) => {
                        upgrade_in_progress = Some(Box::pin(upgrade.hand_over(self.store)))
                    }
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

    /// Reads the certificates of files again, and has due ones of authorities renewed. A listener
    /// whose files cannot be used keeps its certificates.
    fn reload_certificates(&self) {
        self.renew_certificates.notify_waiters();
        for listener in &self.config.listeners {
            let Some(tls) = &listener.tls else { continue };
            let reloaded = tls.tls.reload();
            self.counters.count_certificates(reloaded.is_ok());
            match reloaded {
                Ok(()) if tls.acme.is_some() => {}
                Ok(()) => tracing::info!("certificates of {} are read again", listener.address),
                Err(error) => {
                    tracing::error!(%error, "certificates of {} are not changed", listener.address)
                }
            }
        }
    }
}
