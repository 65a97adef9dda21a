//! Control: the main thread carries out the commands of operators while the event loops serve. They
//! come by signals, and by the admin listener.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_observe::reload::{BegunTrial, ReloadWish, Reloaded};
use kirin_observe::upgrade::{UpgradeWish, Upgraded};
use kirin_workers::TrialConfig;
use tokio::sync::{Notify, mpsc};

use crate::life::control_request::{ControlRequest, Done};
use crate::life::ending::ProgramEnding;
use crate::life::pid_file::PidFile;
use crate::life::reload::{Planned, Reloading};
use crate::life::signals::{SignalCommand, Signals};
use crate::life::systemd::Systemd;
use crate::life::upgrade::{Succession, Upgrade};
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
    /// The file with the process id of this program.
    pub pid_file: Option<&'a PidFile>,
    /// Makes ACME ask for due certificates at once.
    pub renew_certificates: Arc<Notify>,
    /// The service manager.
    pub systemd: &'a Systemd,
}

/// What is going on, and what waits for its end.
#[derive(Default)]
struct Progress<'a> {
    upgrade: Option<Working<'a, Result<Succession, UpgradeError>>>,
    /// Who waits for the end of the upgrade. The signal does not.
    upgrade_done: Option<Done<Upgraded>>,
    reload: Option<Working<'a, ()>>,
    waiting: VecDeque<Wanted>,
    /// The upgrade that begins when no reload is going on any more.
    upgrade_waits: Option<WantedUpgrade>,
}

/// A reload that is wanted.
enum Wanted {
    /// By HUP.
    BySignal,
    /// By a request.
    ByRequest(ReloadWish, Done<Reloaded>),
}

/// An upgrade that is wanted, by USR2 if nobody waits for it.
#[derive(Default)]
struct WantedUpgrade {
    wish: UpgradeWish,
    done: Option<Done<Upgraded>>,
}

impl Control<'_> {
    /// Carries out commands until one ends the program, or a successor serves.
    pub async fn carry_out_commands(
        &self,
        signals: &mut Signals,
        requests: &mut mpsc::Receiver<ControlRequest>,
    ) -> ProgramEnding {
        let mut progress = Progress::default();
        loop {
            self.go_on(&mut progress);
            let Progress { upgrade, reload, waiting, .. } = &mut progress;
            let program = &self.reloading.parts.program;
            tokio::select! {
                command = signals.next() => {
                    if let Some(ending) = self.carry_out(command, &mut progress) {
                        return ending;
                    }
                }
                Some(request) = requests.recv() => match request {
                    ControlRequest::Reload(wish, done) => {
                        waiting.push_back(Wanted::ByRequest(wish, done));
                    }
                    ControlRequest::Upgrade(wish, done) => {
                        let wanted = WantedUpgrade { wish, done: Some(done) };
                        self.want_upgrade(wanted, &mut progress);
                    }
                },
                () = end_of(reload) => progress.reload = None,
                // An upgrade may wait for it.
                () = program.is_alone(), if program.has_predecessor() => {}
                upgraded = end_of(upgrade) => match upgraded {
                    Ok(succession) => {
                        if let Some(done) = progress.upgrade_done.take() {
                            _ = done.send(Ok(Upgraded { pid: succession.pid }));
                        }
                        return ProgramEnding::Succeeded(succession);
                    }
                    Err(error) => {
                        progress.upgrade = None;
                        self.upgrade_failed(&error, progress.upgrade_done.take());
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
        if !self.reloading.parts.program.has_predecessor()
            && let Some(wanted) = progress.upgrade_waits.take()
        {
            self.begin_upgrade(wanted, progress);
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
            SignalCommand::Upgrade => self.want_upgrade(WantedUpgrade::default(), progress),
        }
        None
    }

    /// Begins an upgrade now, or when the reload that is going on is done.
    fn want_upgrade<'a>(&'a self, wanted: WantedUpgrade, progress: &mut Progress<'a>) {
        if progress.upgrade.is_some() || progress.upgrade_waits.is_some() {
            wanted.refuse("an upgrade is going on");
        } else if progress.reload.is_some() {
            tracing::info!("the upgrade begins when the reload is done");
            progress.upgrade_waits = Some(wanted);
        } else if self.reloading.parts.program.has_predecessor() {
            // What it still sends would be lost with this one.
            tracing::info!("the upgrade begins when the program before this one has ended");
            progress.upgrade_waits = Some(wanted);
        } else {
            self.begin_upgrade(wanted, progress);
        }
    }

    fn begin_upgrade<'a>(&'a self, wanted: WantedUpgrade, progress: &mut Progress<'a>) {
        match &self.upgrade {
            Err(reason) => wanted.refuse(reason),
            Ok(upgrade) => {
                let Reloading { parts, admin, configured, sockets, .. } = &self.reloading;
                let limit = wanted.wish.timeout_seconds.map(Duration::from_secs);
                progress.upgrade_done = wanted.done;
                progress.upgrade =
                    Some(Box::pin(upgrade.hand_over(limit, parts, admin, configured, sockets)));
            }
        }
    }

    fn upgrade_failed(&self, error: &UpgradeError, done: Option<Done<Upgraded>>) {
        let reason = error.to_string();
        tracing::error!(error = %reason, "upgrade failed; this program keeps serving");
        // The new program may have written its own id.
        if let Some(Err(error)) = self.pid_file.map(PidFile::write_again) {
            tracing::error!("{error}");
        }
        self.reloading.parts.counters.count_failed_upgrade();
        self.reloading.parts.program.upgrade_failed(&reason);
        if let Some(done) = done {
            _ = done.send(Err(format!("{reason}\nthe program of before serves on")));
        }
    }

    async fn carry_out_reload(&self, wanted: Wanted) {
        match wanted {
            Wanted::BySignal => {
                let wish = ReloadWish { all_apps: true, ..ReloadWish::default() };
                // What has failed is in the log.
                _ = self.reload_now(&wish).await;
            }
            Wanted::ByRequest(wish, done) if wish.dry_run => {
                let planned = self.reloading.plan(&wish).map(Planned::report);
                _ = done.send(planned.map_err(|error| error.to_string()));
            }
            Wanted::ByRequest(wish, done) => {
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
        let mut reloaded = match self.reloading.reload(wish).await {
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
            reloaded.trials = self.trials(&reloaded.apps);
            return Ok(reloaded);
        }
        Err(format!(
            "the workers of before serve on, because the new ones do not start; the configuration \
             is the new one\n{}",
            failed.join("\n")
        ))
    }

    /// Returns which of these applications have new code on trial.
    fn trials(&self, names: &[String]) -> Vec<BegunTrial> {
        let apps = &self.reloading.configured.borrow().apps;
        let named = apps.iter().filter(|app| names.iter().any(|name| app.name() == name));
        let trials = named.filter_map(|app| {
            let trial = app.trial(Instant::now()).filter(|trial| trial.end.is_none())?;
            let TrialConfig { percent, time } = trial.config;
            Some(BegunTrial { app: app.name().to_owned(), percent, time_seconds: time.as_secs() })
        });
        trials.collect()
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
            Self::ByRequest(_, done) => _ = done.send(Err(reason.to_owned())),
        }
    }
}

impl WantedUpgrade {
    fn refuse(self, reason: &str) {
        match self.done {
            None => tracing::error!("USR2 has no effect: {reason}"),
            Some(done) => _ = done.send(Err(reason.to_owned())),
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
