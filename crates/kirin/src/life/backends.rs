//! The applications and upstreams of another configuration. Those that have not changed stay, with
//! their workers, queues and connections.

use std::sync::Arc;
use std::time::Duration;

use kirin_config::Config;
use kirin_config::difference::Change;
use kirin_proxy::Upstream;
use kirin_workers::{App, AppError, TrialConfig};

/// The applications and upstreams of another configuration, in its order.
///
/// Applications that were started for it are stopped again when this is dropped, unless
/// [`Backends::keep`] was called.
pub struct Backends {
    /// The applications.
    pub apps: Vec<Arc<App>>,
    /// The upstreams.
    pub upstreams: Vec<Arc<Upstream>>,
    /// The applications that were started for it.
    started: Vec<Arc<App>>,
    /// The applications that get another number of workers or another trial, with both.
    changed: Vec<(Arc<App>, usize, Option<TrialConfig>)>,
}

impl Backends {
    /// Starts what `config` has besides, or with other settings, and waits until it can serve.
    /// `before` are the applications and upstreams of the configuration in force. `start` starts an
    /// application.
    pub async fn prepare(
        before: (Vec<Arc<App>>, Vec<Arc<Upstream>>),
        config: &Config,
        changes: &[Change],
        start: impl Fn(usize) -> Result<Arc<App>, AppError>,
    ) -> Result<Self, AppError> {
        let (apps_before, upstreams_before) = before;
        let mut backends = Self {
            apps: Vec::new(),
            upstreams: Vec::new(),
            started: Vec::new(),
            changed: Vec::new(),
        };
        for (at, wanted) in config.apps.iter().enumerate() {
            let present = apps_before.iter().find(|app| app.name() == wanted.name);
            let changed = of(changes, "app", &wanted.name);
            let is_of_running = |change: &&Change| {
                let key = change.key.as_deref();
                change.section == "app.trial" || matches!(key, Some("workers" | "trial"))
            };
            match present {
                Some(app) if changed.is_empty() => backends.apps.push(Arc::clone(app)),
                Some(app) if changed.iter().all(is_of_running) => {
                    backends.changed.push((Arc::clone(app), wanted.workers, wanted.trial));
                    backends.apps.push(Arc::clone(app));
                }
                _ => {
                    let app = start(at)?;
                    if let Some(present) = present {
                        keep_number(&app, present);
                    }
                    backends.started.push(Arc::clone(&app));
                    backends.apps.push(app);
                }
            }
        }
        for app in &backends.started {
            app.ready().await?;
        }
        for wanted in &config.upstreams {
            let present = upstreams_before.iter().find(|known| known.name() == wanted.name);
            let upstream = match present {
                Some(known) if of(changes, "upstream", &wanted.name).is_empty() => {
                    Arc::clone(known)
                }
                Some(known) => Upstream::following(wanted.clone(), known).await,
                None => Upstream::start(wanted.clone()).await,
            };
            backends.upstreams.push(upstream);
        }
        Ok(backends)
    }

    /// Returns the names of the applications that were started.
    pub fn started(&self) -> Vec<String> {
        self.started.iter().map(|app| app.name().to_owned()).collect()
    }

    /// Keeps the applications that were started, and changes others that go on.
    pub fn keep(mut self) {
        self.started.clear();
        for (app, workers, trial) in self.changed.drain(..) {
            // An operator's number stays if only the trial has changed.
            if app.wanted_workers().1 != workers {
                app.configure_workers(workers);
            }
            app.configure_trial(trial);
        }
    }
}

impl Drop for Backends {
    fn drop(&mut self) {
        for app in self.started.drain(..) {
            tokio::spawn(async move { app.stop(Duration::ZERO).await });
        }
    }
}

/// Gives an application the number of workers that an operator has given to the one before it, if
/// the configurations do not differ in it.
fn keep_number(app: &App, before: &App) {
    let (wanted, configured) = before.wanted_workers();
    if wanted != configured && app.wanted_workers().1 == configured {
        app.set_workers(wanted);
    }
}

/// Returns the changes of the item with a name in a section such as `app`.
fn of<'a>(changes: &'a [Change], section: &str, name: &str) -> Vec<&'a Change> {
    let is_in = |change: &Change| {
        let rest = change.section.strip_prefix(section);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_of = |change: &&Change| is_in(change) && change.name.as_deref() == Some(name);
    changes.iter().filter(is_of).collect()
}
