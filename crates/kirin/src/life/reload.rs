//! A reload: another configuration comes into force while the program serves. It comes into force
//! as a whole or not at all.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kirin_acme::{Acme, AcmeError, OtherCertificates};
use kirin_config::difference::{Change, difference};
use kirin_config::reload_class::ReloadClass;
use kirin_config::{Config, ConfigErrors, ConfigSource, ListenerConfig, read_after};
use kirin_gateway::routing::access::Maintenance;
use kirin_http::ListenAddress;
use kirin_observe::reload::{ReloadWish, Reloaded};
use kirin_sockets::Starter;
use kirin_store::{Now, Store};
use kirin_traces::{TraceExporter, TraceExporterError};
use kirin_workers::{App, AppError, AppState};
use tokio::sync::{Notify, oneshot};

use crate::admin::Admin;
use crate::admin::unknown_name::UnknownName;
use crate::life::apps;
use crate::life::backends::Backends;
use crate::life::bind::{acme_certificates, listen_where_told, share_descriptors};
use crate::life::configured::{self, Configured, FollowError, Renewals};
use crate::life::launch::Launch;
use crate::life::parts::Parts;
use crate::life::read_again::{self, Unreadable};
use crate::life::run_directory::RunDirectory;
use crate::life::start::warn_of_weak_passwords;
use crate::serve::event_loop::ServingLoop;
use crate::serve::listener_settings::partners;
use crate::serve::listeners::{BoundListener, ListenerOpenError, ListenerSockets, open_http};
use crate::serve::loop_reload::{LoopReload, LoopReloadError};
use crate::serve::sockets::{SocketNumber, Sockets};

/// The memory by which the store becomes smaller at once.
const SHRINK_STEP_BYTES: usize = 16 << 20;

/// How long an exporter of traces waits for the requests of its configuration.
const TRACE_WAIT: Duration = Duration::from_secs(60);

/// The time for the last traces.
const LAST_TRACES: Duration = Duration::from_secs(1);

/// Why another configuration does not come into force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The configuration has errors.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// It changes what cannot change while the program runs.
    #[error("{}", describe(.0))]
    NeedsUpgrade(Vec<Change>),
    /// The user that serves cannot read one of its files.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A log or a certificate cannot be used.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// There is no such application.
    #[error(transparent)]
    UnknownApp(#[from] UnknownName),
    /// An application cannot be loaded.
    #[error("{0}; nothing is changed")]
    App(#[from] AppError),
    /// Traces cannot be exported.
    #[error(transparent)]
    Traces(#[from] TraceExporterError),
    /// A listener cannot be opened.
    #[error(transparent)]
    Listen(#[from] ListenerOpenError),
    /// The starter of the program has opened a listener that is to be closed.
    #[error(
        "listener {0}: its socket was handed over, so clients would wait for ever if Kirin closed it; nothing is changed"
    )]
    HandedOver(ListenAddress),
    /// Certificates of an authority cannot be kept.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// An event loop cannot serve it.
    #[error(transparent)]
    Loop(#[from] LoopReloadError),
    /// An event loop has ended.
    #[error("an event loop has ended")]
    LoopGone,
}

fn describe(changes: &[Change]) -> String {
    let changes: Vec<String> = changes.iter().map(|change| format!("  {change}")).collect();
    let these = changes.join("\n");
    format!(
        "these changes need another start of the program, so nothing is changed; `kirin upgrade` \
         starts it again without loss (docs/deploy.md):\n{these}"
    )
}

/// What a reload needs of the program.
pub struct Reloading<'a> {
    /// What no configuration replaces.
    pub parts: &'a Parts,
    /// The answers to operators.
    pub admin: &'a Admin,
    /// The event loops.
    pub loops: &'a [ServingLoop],
    /// The configuration that is in force.
    pub configured: &'a RefCell<Configured>,
    /// The listening sockets.
    pub sockets: &'a RefCell<Sockets>,
    /// The certificates that come from authorities.
    pub acme: &'a RefCell<Acme>,
    /// How the program was launched.
    pub launch: &'a Launch,
    /// The directory of the program.
    pub run_directory: &'a RunDirectory,
    /// Applications that no configuration has any more, and that may not have ended yet.
    pub retiring: &'a RefCell<Vec<Arc<App>>>,
    /// Is notified when there are other applications.
    pub has_other_apps: Notify,
    /// The addresses of inherited sockets, if they replace the listener of the configuration.
    pub told: &'a [ListenAddress],
}

/// A configuration that was read and may come into force.
struct Candidate {
    config: Config,
    source: ConfigSource,
    changes: Vec<Change>,
    /// The most connections.
    connections: usize,
}

/// What a reload has done, or would do.
#[derive(Default)]
pub struct Planned {
    /// What differs.
    pub changes: Vec<Change>,
    /// The applications that are to be loaded again.
    pub apps: Vec<String>,
}

impl Planned {
    /// Returns what an operator gets to know.
    pub fn report(self) -> Reloaded {
        let changes = self.changes.iter().map(ToString::to_string).collect();
        Reloaded { changes, apps: self.apps, trials: Vec::new() }
    }
}

impl Reloading<'_> {
    /// Returns what would change, if the configuration could come into force.
    pub fn plan(&self, wish: &ReloadWish) -> Result<Planned, ReloadError> {
        let Some(candidate) = self.read()? else { return Ok(Planned::default()) };
        let apps = wanted_apps(&candidate.config, wish)?;
        Ok(Planned { changes: candidate.changes, apps })
    }

    /// Reads the configuration again, and puts it into force. Returns what has changed, and which
    /// applications are still to be loaded again: those with new settings are loaded already.
    pub async fn reload(&self, wish: &ReloadWish) -> Result<Planned, ReloadError> {
        let Some(candidate) = self.read()? else { return Ok(Planned::default()) };
        let Candidate { config, source, changes, connections } = candidate;
        warn_of_weak_passwords(&config);
        let mut apps = wanted_apps(&config, wish)?;
        let backends = self.backends(&config, &changes).await?;
        // After the applications, because clients of a new listener wait from here on.
        let (opening, sockets) = self.open(&config)?;
        let (mut next, renewals) = {
            let before = self.configured.borrow();
            before.following(config, source, sockets, &self.parts.connections)?
        };
        next.apps.clone_from(&backends.apps);
        next.upstreams.clone_from(&backends.upstreams);
        next.traces = self.traces(&next.config)?;
        let authorities = self
            .acme
            .borrow()
            .prepare(acme_certificates(&next.config), next.config.user.as_ref())?;
        let ready = self.prepare(&next, opening).await?;
        let started = backends.started();
        backends.keep();
        self.commit(next, Certificates { renewals, authorities }, ready, connections).await;
        apps.retain(|app| !started.contains(app));
        Ok(Planned { changes, apps })
    }

    /// Reads the configuration. Returns `None` if the program was started without one.
    fn read(&self) -> Result<Option<Candidate>, ReloadError> {
        let before = self.configured.borrow();
        let Some(before_source) = &before.source else { return Ok(None) };
        let source = match &self.launch.config_file {
            Some(file) => ConfigSource::read(file)?,
            None => before_source.clone(),
        };
        let mut config = read_after(&source, &before.config)?;
        listen_where_told(&mut config, self.told);
        let connections = share_descriptors(&mut config);
        let changes = difference(before_source, &source);
        let needs_upgrade = |change: &&Change| change.class == ReloadClass::Upgrade;
        let refused: Vec<Change> = changes.iter().filter(needs_upgrade).cloned().collect();
        if !refused.is_empty() {
            return Err(ReloadError::NeedsUpgrade(refused));
        }
        read_again::check(&config, None)?;
        Ok(Some(Candidate { config, source, changes, connections }))
    }

    /// Returns the exporter of a configuration: the present one, if nothing about it has changed.
    fn traces(&self, config: &Config) -> Result<Option<TraceExporter>, TraceExporterError> {
        let before = self.configured.borrow();
        match before.config.traces == config.traces {
            true => Ok(before.traces.clone()),
            false => config.traces.as_ref().map(TraceExporter::start).transpose(),
        }
    }

    /// Starts the applications and upstreams that a configuration has besides, or with other
    /// settings.
    async fn backends(&self, config: &Config, changes: &[Change]) -> Result<Backends, AppError> {
        let start = |at: usize| {
            apps::start(&config.apps[at], self.launch, self.run_directory, &self.parts.handles)
        };
        let before = {
            let before = self.configured.borrow();
            (before.apps.clone(), before.upstreams.clone())
        };
        Backends::prepare(before, config, changes, start).await
    }

    /// Opens the listeners that a configuration has besides. Returns them, and the sockets of all
    /// listeners.
    fn open(&self, config: &Config) -> Result<(Opening<'_>, Vec<ListenerSockets>), ReloadError> {
        let before = self.configured.borrow();
        let partners = partners(&before.config.listeners, &config.listeners);
        let is_of_starter = !matches!(self.sockets.borrow().starter(), None | Some(Starter::Kirin));
        for closed in partners.removed {
            if is_of_starter && before.sockets[closed].is_inherited {
                let address = before.config.listeners[closed].address.clone();
                return Err(ReloadError::HandedOver(address));
            }
        }
        let mut opening = Opening {
            sockets: self.sockets,
            opened: Vec::new(),
            loops: self.loops.iter().map(|_| Vec::new()).collect(),
        };
        let mut all = Vec::new();
        let listeners = config.listeners.iter().zip(partners.old_of_new);
        for (at, (listener, partner)) in listeners.enumerate() {
            all.push(match partner {
                Some(partner) => before.sockets[partner].clone(),
                None => opening.open(at, listener)?,
            });
        }
        Ok((opening, all))
    }

    /// Has all event loops prepare a configuration. It does not come into force if what is
    /// returned is dropped.
    async fn prepare<'a>(
        &self,
        next: &Configured,
        mut opening: Opening<'a>,
    ) -> Result<ReadyLoops<'a>, ReloadError> {
        let resources = self.parts.loop_resources(next, self.admin.clone());
        let numbers = self.numbers(next);
        let mut asked = Vec::new();
        let bound = std::mem::take(&mut opening.loops);
        let loops = self.loops.iter().zip(&next.counters).zip(bound);
        for ((event_loop, counters), bound) in loops {
            let (prepared, is_prepared) = oneshot::channel();
            let (commit, commits) = oneshot::channel();
            let (committed, is_committed) = oneshot::channel();
            let reload = LoopReload {
                resources: resources.clone(),
                counters: Arc::clone(counters),
                numbers: Arc::clone(&numbers),
                bound,
                prepared,
                commit: commits,
                committed,
            };
            event_loop.reloads.send(reload).map_err(|_| ReloadError::LoopGone)?;
            asked.push((is_prepared, Ready { commit, is_committed }));
        }
        let mut ready = Vec::new();
        for (is_prepared, of_loop) in asked {
            is_prepared.await.map_err(|_| ReloadError::LoopGone)??;
            ready.push(of_loop);
        }
        Ok(ReadyLoops { loops: ready, opening })
    }

    /// Returns the index that each present listener has in the other configuration.
    fn numbers(&self, next: &Configured) -> Arc<[Option<usize>]> {
        let before = self.configured.borrow();
        partners(&next.config.listeners, &before.config.listeners).old_of_new.into()
    }

    /// Gives the store the memory of the configuration in force, if the one before had another.
    /// What `cache_memlimit` has set stays otherwise.
    fn resize_store(&self, before: &Configured) {
        let wanted = self.configured.borrow().config.store.engine.memory_bytes;
        if wanted != before.config.store.engine.memory_bytes {
            let store = Arc::clone(&self.parts.store);
            tokio::task::spawn_blocking(move || resize(&store, wanted));
        }
    }

    /// Goes on with the maintenance that an operator has begun, as far as the configuration in
    /// force does not say something else about it.
    fn follow_maintenance(&self, before: &Configured) {
        let now = self.configured.borrow();
        let (present, earlier) = (maintenance(&now.config), maintenance(&before.config));
        let is_overridden = |number| {
            let earlier = earlier.get(&number);
            earlier.is_some_and(|earlier| present.get(&number) != Some(earlier))
        };
        for held in self.parts.maintenance.follow(&now.route_names, is_overridden) {
            tracing::info!("{held}: the maintenance by an operator has ended with this reload");
        }
    }

    /// Closes the listeners that the configuration in force no longer has. The loops have closed
    /// their own sockets, or are about to.
    fn close_others(&self, before: &Configured) {
        let now = self.configured.borrow();
        let is_open = |number| now.sockets.iter().any(|sockets| sockets.number == number);
        for sockets in before.sockets.iter().filter(|sockets| !is_open(sockets.number)) {
            self.sockets.borrow_mut().close(sockets.number);
        }
    }

    /// Stops the applications that the configuration in force no longer has, when no request of
    /// the configuration before needs them any more.
    fn retire_others(&self, before: Configured) {
        let now = self.configured.borrow();
        if let Some(traces) = &before.traces
            && before.config.traces != now.config.traces
        {
            let (traces, in_use) = (traces.clone(), Arc::downgrade(&before.in_use));
            tokio::spawn(retire_traces(traces, in_use));
        }
        let mut retiring = self.retiring.borrow_mut();
        retiring.retain(|app| !matches!(app.state(), AppState::Stopped));
        let in_use = Arc::downgrade(&before.in_use);
        for app in before.apps {
            if !now.apps.iter().any(|present| Arc::ptr_eq(present, &app)) {
                retiring.push(Arc::clone(&app));
                tokio::spawn(apps::retire(app, Weak::clone(&in_use)));
            }
        }
        self.has_other_apps.notify_one();
    }

    async fn commit(
        &self,
        next: Configured,
        certificates: Certificates,
        ready: ReadyLoops<'_>,
        connections: usize,
    ) {
        next.set_limits(&self.parts.connections, connections);
        for (tls, renewal) in certificates.renewals {
            tls.renew(renewal);
        }
        self.acme.borrow_mut().change(certificates.authorities);
        self.admin.replace(self.parts.admin_parts(&next));
        let has_other_patterns =
            self.configured.borrow().config.url_patterns != next.config.url_patterns;
        for live in &self.parts.live {
            let patterns = has_other_patterns.then(|| next.config.url_patterns.clone());
            live.count_by(patterns, Arc::clone(&next.route_sites));
        }
        self.parts.maintenance.include(&next.route_names);
        let mut committed = Vec::new();
        let ReadyLoops { loops, mut opening } = ready;
        // They stay.
        opening.opened.clear();
        for Ready { commit, is_committed } in loops {
            // A loop that drains takes no configuration.
            _ = commit.send(());
            committed.push(is_committed);
        }
        for is_committed in committed {
            _ = is_committed.await;
        }
        let before = self.configured.replace(next);
        self.follow_maintenance(&before);
        self.resize_store(&before);
        self.close_others(&before);
        self.retire_others(before);
    }
}

/// Listeners that have just been opened. They are closed again when this is dropped.
struct Opening<'a> {
    sockets: &'a RefCell<Sockets>,
    opened: Vec<SocketNumber>,
    /// The sockets of each event loop.
    loops: Vec<Vec<BoundListener>>,
}

impl Opening<'_> {
    fn open(
        &mut self,
        number: usize,
        listener: &ListenerConfig,
    ) -> Result<ListenerSockets, ListenerOpenError> {
        let mut sockets = self.sockets.borrow_mut();
        let opened = open_http(number, listener, &mut self.loops, &mut sockets)?;
        self.opened.push(opened.number);
        Ok(opened)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        let mut sockets = self.sockets.borrow_mut();
        self.opened.drain(..).for_each(|opened| sockets.close(opened));
    }
}

/// Returns the maintenance of each route, as the configuration has it, by the route's number.
fn maintenance(config: &Config) -> HashMap<u32, Option<&Maintenance>> {
    let routes = config.gateway.sites.iter().flat_map(|site| &site.routes);
    routes.map(|route| (route.number, route.rules.access.maintenance.as_ref())).collect()
}

/// The certificates of another configuration.
struct Certificates {
    /// Those of files.
    renewals: Renewals,
    /// Those of authorities.
    authorities: OtherCertificates,
}

/// Makes the store larger at once, or smaller step by step: items are evicted under the lock of a
/// shard, for which event loops wait.
fn resize(store: &Store, wanted: usize) {
    while store.memory_limit() > wanted + SHRINK_STEP_BYTES {
        store.set_memory_limit(store.memory_limit() - SHRINK_STEP_BYTES, Now::on_steady_clock());
    }
    store.set_memory_limit(wanted, Now::on_steady_clock());
}

/// Ends an exporter of traces when no request of its configuration is in progress any more, but
/// after a minute at the latest.
async fn retire_traces(traces: TraceExporter, in_use: Weak<()>) {
    configured::unused(&in_use, TRACE_WAIT).await;
    _ = tokio::task::spawn_blocking(move || traces.stop(LAST_TRACES)).await;
}

/// Returns the names of the applications that an operator wants to be loaded again.
fn wanted_apps(config: &Config, wish: &ReloadWish) -> Result<Vec<String>, ReloadError> {
    let names = || config.apps.iter().map(|app| app.name.clone());
    if wish.all_apps {
        return Ok(names().collect());
    }
    match wish.apps.iter().find(|wanted| !names().any(|name| name == **wanted)) {
        None => Ok(wish.apps.clone()),
        Some(unknown) => Err(UnknownName::new("app", unknown, names()).into()),
    }
}

/// The event loops, ready for another configuration.
struct ReadyLoops<'a> {
    loops: Vec<Ready>,
    opening: Opening<'a>,
}

/// An event loop that is ready for another configuration.
struct Ready {
    commit: oneshot::Sender<()>,
    is_committed: oneshot::Receiver<()>,
}
