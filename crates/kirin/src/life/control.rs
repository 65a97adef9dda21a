//! Control: the main thread carries out the commands of operators while the event loops serve. They
//! come by signals, and by the admin listener.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use kirin_observe::reload::{ReloadWish, Reloaded};
use tokio::sync::{Notify, mpsc};

use crate::life::ending::ProgramEnding;
use crate::life::reload::{Planned, Reloading};
use crate::life::reload_request::ReloadRequest;
use crate::life::signals::{SignalCommand, Signals};
use crate::life::systemd::Systemd;
use crate::life::upgrade::Upgrade;
use crate::life::upgrade_channel::UpgradeError;
use crate::serve::logs;

/// Work of the main thread that takes its time, while further commands come.
type Working<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The parts of the program on which commands have an effect.
pub struct Control<'a> {
    /// How to upgrade, or why the program cannot be upgraded.
    pub upgrade: Result<Upgrade, String>,
    /// How to put another configuration into force.
    pub reloading: Reloading<'a>,
    /// Makes ACME ask for due certificates at once.
    pub renew_certificates: Arc<Notify>,
    /// The service manager.
    pub systemd: &'a Systemd,
}

/// What is going on, and what waits for its end.
#[derive(Default)]
struct Progress<'a> {
    upgrade: Option<Working<'a, Result<u32, UpgradeError>>>,
    reload: Option<Working<'a, ()>>,
    waiting: VecDeque<Wanted>,
    /// Whether an upgrade begins when no reload is going on any more.
    upgrade_waits: bool,
}

/// A reload that is wanted.
enum Wanted {
    /// By HUP.
    BySignal,
    /// By a request.
    ByRequest(ReloadRequest),
}

impl Control<'_> {
    /// Carries out commands until one ends the program, or a successor serves.
    pub async fn carry_out_commands(
        &self,
        signals: &mut Signals,
        requests: &mut mpsc::Receiver<ReloadRequest>,
    ) -> ProgramEnding {
        let mut progress = Progress::default();
        loop {
            self.go_on(&mut progress);
            let Progress { upgrade, reload, waiting, .. } = &mut progress;
            tokio::select! {
                command = signals.next() => {
                    if let Some(ending) = self.carry_out(command, &mut progress) {
                        return ending;
                    }
                }
                Some(request) = requests.recv() => waiting.push_back(Wanted::ByRequest(request)),
                () = end_of(reload) => progress.reload = None,
                upgraded = end_of(upgrade) => match upgraded {
                    Ok(pid) => return ProgramEnding::Succeeded(pid),
                    Err(error) => {
                        tracing::error!(%error, "upgrade failed; this program keeps serving");
                        self.reloading.parts.counters.count_failed_upgrade();
                        progress.upgrade = None;
                    }
                },
            }
        }
    }

    /// Begins what has waited, if nothing else is going on.
    fn go_on<'a>(&'a self, progress: &mut Progress<'a>) {
        if progress.reload.is_some() {
            return;
        }
        if std::mem::take(&mut progress.upgrade_waits) {
            self.begin_upgrade(progress);
        }
        if progress.upgrade.is_some() {
            // The new program reads the configuration of now, and this one ends.
            for wanted in progress.waiting.drain(..) {
                wanted.refuse("an upgrade is going on; the new program reads the configuration");
            }
        } else if let Some(wanted) = progress.waiting.pop_front() {
            progress.reload = Some(Box::pin(self.carry_out_reload(wanted)));
        }
    }

    /// Carries out the command of a signal, or begins to. Returns the end, if that is the command.
    fn carry_out<'a>(
        &'a self,
        command: SignalCommand,
        progress: &mut Progress<'a>,
    ) -> Option<ProgramEnding> {
        let apps = &self.reloading.configured.borrow().apps;
        match command {
            SignalCommand::Stop(stop) => return Some(ProgramEnding::Stopped(stop)),
            // One that waits will read what is there when it begins.
            SignalCommand::Reload => {
                let is_waiting =
                    progress.waiting.iter().any(|wanted| matches!(wanted, Wanted::BySignal));
                if !is_waiting {
                    progress.waiting.push_back(Wanted::BySignal);
                }
            }
            SignalCommand::AddWorker => apps.iter().for_each(|app| app.add_worker()),
            SignalCommand::RemoveWorker => apps.iter().for_each(|app| app.remove_worker()),
            SignalCommand::ReopenLogs => logs::reopen(&self.reloading.configured.borrow().logs),
            SignalCommand::Upgrade if progress.upgrade.is_some() => {
                tracing::warn!("USR2 has no effect: an upgrade is going on");
            }
            SignalCommand::Upgrade if progress.reload.is_some() => {
                tracing::info!("the upgrade begins when the reload is done");
                progress.upgrade_waits = true;
            }
            SignalCommand::Upgrade => self.begin_upgrade(progress),
        }
        None
    }

    fn begin_upgrade<'a>(&'a self, progress: &mut Progress<'a>) {
        match &self.upgrade {
            Err(reason) => tracing::error!("USR2 has no effect: {reason}"),
            Ok(upgrade) => {
                let Reloading { parts, sockets, .. } = &self.reloading;
                progress.upgrade = Some(Box::pin(upgrade.hand_over(&parts.store, sockets)));
            }
        }
    }

    async fn carry_out_reload(&self, wanted: Wanted) {
        match wanted {
            Wanted::BySignal => {
                let wish = ReloadWish { all_apps: true, ..ReloadWish::default() };
                // What has failed is in the log.
                _ = self.reload_now(&wish).await;
            }
            Wanted::ByRequest(ReloadRequest { wish, done }) if wish.dry_run => {
                let planned = self.reloading.plan(&wish).map(Planned::report);
                _ = done.send(planned.map_err(|error| error.to_string()));
            }
            Wanted::ByRequest(ReloadRequest { wish, done }) => {
                // An operator that has gone does not stop the reload.
                _ = done.send(self.reload_now(&wish).await);
            }
        }
    }

    async fn reload_now(&self, wish: &ReloadWish) -> Result<Reloaded, String> {
        tracing::info!("reloading");
        self.renew_certificates.notify_waiters();
        self.systemd.reloading();
        let reloaded = self.reload(wish).await;
        self.systemd.ready();
        reloaded
    }

    /// Puts another configuration into force, and loads applications again. The error is a message
    /// for the operator.
    async fn reload(&self, wish: &ReloadWish) -> Result<Reloaded, String> {
        let counters = &self.reloading.parts.counters;
        let reloaded = match self.reloading.reload(wish).await {
            Ok(done) => done.report(),
            Err(error) => {
                counters.count_reload(false);
                tracing::error!("not reloaded, the configuration of before serves on:\n{error}");
                return Err(error.to_string());
            }
        };
        counters.count_reload(true);
        for change in &reloaded.changes {
            tracing::info!("changed: {change}");
        }
        let failed = self.load_again(&reloaded.apps).await;
        if failed.is_empty() {
            tracing::info!("reloaded");
            return Ok(reloaded);
        }
        Err(format!(
            "the workers of before serve on, because the new ones do not start; the configuration \
             is the new one\n{}",
            failed.join("\n")
        ))
    }

    /// Loads applications again. Returns why some cannot be loaded.
    async fn load_again(&self, names: &[String]) -> Vec<String> {
        let apps = self.reloading.configured.borrow().apps.clone();
        let wanted: Vec<_> =
            apps.into_iter().filter(|app| names.iter().any(|name| app.name() == name)).collect();
        wanted.iter().for_each(|app| app.reload());
        let mut failed = Vec::new();
        for app in wanted {
            if let Some(error) = app.reloaded().await {
                failed.push(format!("app `{}`: {error}", app.name()));
            }
        }
        failed
    }
}

impl Wanted {
    fn refuse(self, reason: &str) {
        match self {
            Self::BySignal => tracing::warn!("HUP has no effect: {reason}"),
            Self::ByRequest(ReloadRequest { done, .. }) => _ = done.send(Err(reason.to_owned())),
        }
    }
}

/// Waits for the end of work, if there is any.
async fn end_of<T>(work: &mut Option<Working<'_, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => pending().await,
    }
}
