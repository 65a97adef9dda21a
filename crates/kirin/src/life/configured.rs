//! A configuration with what was opened for it. The program has one at a time; a reload puts
//! another in its place.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use kirin_config::{Config, ConfigSource};
use kirin_gateway::routing::route_names::RouteNames;
use kirin_observe::client_accounts::ClientAccounts;
use kirin_observe::live::route_sites::RouteSites;
use kirin_observe::metrics::counters::LoopCounters;
use kirin_observe::served::configuration_digest;
use kirin_proxy::Upstream;
use kirin_server::tls::Renewal;
use kirin_server::{ConnectionCount, OpenLog, Tls, TlsError};
use kirin_traces::TraceExporter;
use kirin_workers::App;

use crate::serve::listener_settings::{self, ListenerSettings, partners};
use crate::serve::listeners::ListenerSockets;
use crate::serve::logs::{self, LogError, Logs};

/// The time between two looks at whether a configuration is still in use.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A configuration with what was opened for it.
pub struct Configured {
    /// The configuration.
    pub config: Arc<Config>,
    /// The text that it was read from. `None` if it was not read from a text.
    pub source: Option<ConfigSource>,
    /// The applications, in the order of the configuration. There are none before the start.
    pub apps: Vec<Arc<App>>,
    /// The upstreams, in the same way.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Exports traces, if that is configured.
    pub traces: Option<TraceExporter>,
    /// Is held as long as requests may be answered by this configuration.
    pub in_use: Arc<()>,
    /// The targets of access logs.
    pub logs: Logs,
    /// The access logs of routes, by their numbers.
    pub route_logs: Arc<[OpenLog]>,
    /// The listeners, in the order of the configuration.
    pub listeners: Arc<[ListenerSettings]>,
    /// The sockets of the listeners, in the same order.
    pub sockets: Vec<ListenerSockets>,
    /// The accounts of bytes that are held for clients.
    pub accounts: ClientAccounts,
    /// The counters of each event loop.
    pub counters: Vec<Arc<LoopCounters>>,
    /// The names of the routes.
    pub route_names: Arc<RouteNames>,
    /// The sites of the routes, for the live tables.
    pub route_sites: Arc<RouteSites>,
}

/// Why a configuration cannot follow another.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// An access log cannot be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The certificates of a listener cannot be used.
    #[error("listener {0}: {1}")]
    Tls(String, #[source] TlsError),
}

/// The certificates that listeners take over when a configuration comes into force.
pub type Renewals = Vec<(Arc<Tls>, Renewal)>;

impl Configured {
    /// Returns a short text that differs if the texts of two configurations do.
    pub fn digest(&self) -> Option<String> {
        let files = self.source.as_ref()?.files();
        Some(configuration_digest(files.iter().map(|file| file.text.as_str())))
    }

    /// Opens what the first configuration needs.
    pub fn first(
        config: Config,
        source: Option<ConfigSource>,
        sockets: Vec<ListenerSockets>,
        connections: &Arc<ConnectionCount>,
    ) -> Result<Self, LogError> {
        Self::open(config, source, sockets, connections, None)
    }

    /// Opens what another configuration needs. What has not changed stays open, and goes on
    /// counting. Nothing has an effect before [`Configured::set_limits`] is called, and the
    /// certificates are renewed.
    pub fn following(
        &self,
        mut config: Config,
        source: ConfigSource,
        sockets: Vec<ListenerSockets>,
        connections: &Arc<ConnectionCount>,
    ) -> Result<(Self, Renewals), FollowError> {
        let mut renewals = Renewals::new();
        let partners = partners(&self.config.listeners, &config.listeners).old_of_new;
        for (listener, partner) in config.listeners.iter_mut().zip(partners) {
            let before = partner.and_then(|partner| self.config.listeners[partner].tls.as_ref());
            if let (Some(tls), Some(before)) = (&mut listener.tls, before) {
                let renewal = before.tls.renewal_by(&tls.tls);
                let renewal = renewal
                    .map_err(|error| FollowError::Tls(listener.address.to_string(), error))?;
                renewals.push((Arc::clone(&before.tls), renewal));
                tls.tls = Arc::clone(&before.tls);
            }
        }
        Ok((Self::open(config, Some(source), sockets, connections, Some(self))?, renewals))
    }

    fn open(
        config: Config,
        source: Option<ConfigSource>,
        sockets: Vec<ListenerSockets>,
        connections: &Arc<ConnectionCount>,
        before: Option<&Self>,
    ) -> Result<Self, LogError> {
        let partners = match before {
            Some(before) => partners(&before.config.listeners, &config.listeners).old_of_new,
            None => vec![None; config.listeners.len()],
        };
        let mut logs = before.map_or_else(Logs::new, |before| before.logs.clone());
        let route_logs = config.route_logs.iter();
        let route_logs = route_logs.map(|log| logs::open(log, config.user.as_ref(), &mut logs));
        let route_logs = route_logs.collect::<Result<_, _>>()?;
        let accounts = match before {
            Some(before) => before.accounts.following(&config, &partners),
            None => ClientAccounts::new(&config),
        };
        let of_partner = |partner: &Option<usize>| {
            let before = before.zip(*partner);
            before.map(|(before, partner)| &before.listeners[partner])
        };
        let settings_before: Vec<_> = partners.iter().map(of_partner).collect();
        let listeners = listener_settings::settings(
            &config,
            connections,
            &accounts,
            &settings_before,
            &mut logs,
        )?;
        let targets = config.listeners.iter().filter_map(|listener| listener.access_log.as_ref());
        let targets = targets.chain(&config.route_logs).map(|log| &log.target);
        let targets: Vec<_> = targets.collect();
        logs.retain(|target, _| targets.contains(&target));
        let counters = (0..config.threads).map(|at| {
            let before = before.and_then(|before| before.counters.get(at));
            Arc::new(LoopCounters::new(before.map(|before| &**before), &partners))
        });
        let route_sites = before.map(|before| &*before.route_sites);
        Ok(Self {
            counters: counters.collect(),
            route_names: Arc::new(config.gateway.route_names()),
            route_sites: Arc::new(RouteSites::from_config(&config.gateway, route_sites)),
            config: Arc::new(config),
            source,
            apps: Vec::new(),
            upstreams: Vec::new(),
            traces: None,
            in_use: Arc::default(),
            logs,
            route_logs,
            listeners,
            sockets,
            accounts,
        })
    }

    /// Returns the addresses of the listeners, as clients write them.
    pub fn urls(&self) -> Vec<String> {
        let mut urls = Vec::new();
        for (sockets, listener) in self.sockets.iter().zip(&self.config.listeners) {
            for url in sockets.urls(listener.tls.is_some()) {
                if !urls.contains(&url) {
                    urls.push(url);
                }
            }
        }
        urls
    }

    /// Sets the limits that are counted for all event loops together.
    pub fn set_limits(&self, connections: &ConnectionCount, limit: usize) {
        connections.set_limit(limit);
        self.accounts.set_limits(&self.config);
        for ListenerSettings { config, .. } in &*self.listeners {
            if let Some(admission) = &config.limits.admission {
                admission.set_limit_per_address(config.connections_per_address);
            }
        }
    }
}

/// Waits until no request of a configuration is in progress any more, but for this time at most.
/// `in_use` is its [`Configured::in_use`].
pub async fn unused(in_use: &Weak<()>, limit: Duration) {
    let until = Instant::now() + limit;
    while in_use.strong_count() > 0 && Instant::now() < until {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}
