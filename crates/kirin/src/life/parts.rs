//! The parts of the program that no other configuration replaces, and what event loops and
//! operators get of them under one configuration.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use kirin_acme::Challenges;
use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::routing::operator_maintenance::OperatorMaintenance;
use kirin_gateway::routing::site_names::SiteNames;
use kirin_memcache::MemcachedServer;
use kirin_observe::advise::Runs;
use kirin_observe::live::observer::LiveLoop;
use kirin_observe::machines::Machines;
use kirin_observe::metrics::counters::ProgramCounters;
use kirin_observe::metrics::{Metrics, NamedParts, WorkerReadings};
use kirin_observe::observed::{ObservedParts, ProcessCounts};
use kirin_observe::program_state::ProgramState;
use kirin_observe::stage::Stage;
use kirin_origin::{NearStore, StoreOrigin};
use kirin_server::{BlockedAddresses, ConnectionCount};
use kirin_store::Store;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{Barrier, watch};

use crate::admin::{Admin, AdminParts};
use crate::life::configured::Configured;
use crate::life::new_process::GivenUpProcesses;
use crate::life::{panics, program_log};
use crate::serve::event_loop::LoopResources;
use crate::serve::handed::ConnectionSocket;

/// What the program counts in statics.
const PROCESS_COUNTS: ProcessCounts =
    ProcessCounts { panics: panics::count, lost_log_lines: program_log::lost_lines };

/// The parts of the program that no other configuration replaces.
pub struct Parts {
    /// The store.
    pub store: Arc<Store>,
    /// The server that has the items of the store.
    pub origin: Option<Arc<StoreOrigin>>,
    /// This machine and the others with the same origin.
    pub machines: Option<Arc<Machines>>,
    /// The counters of the caches, by event loop.
    pub cache_counters: Vec<Arc<CacheCounters>>,
    /// The live tables of requests, by event loop.
    pub live: Vec<Arc<LiveLoop>>,
    /// The answers to memcached clients.
    pub memcached: Arc<MemcachedServer>,
    /// The answers to authorities that issue certificates.
    pub challenges: Arc<Challenges>,
    /// The count of client connections.
    pub connections: Arc<ConnectionCount>,
    /// The maintenance that an operator has begun.
    pub maintenance: Arc<OperatorMaintenance>,
    /// The addresses that an operator has blocked.
    pub blocked: Arc<BlockedAddresses>,
    /// The state of the program as such.
    pub program: Arc<ProgramState>,
    /// New programs of upgrades that were given up.
    pub given_up: Arc<GivenUpProcesses>,
    /// What the main thread counts for metrics.
    pub counters: Arc<ProgramCounters>,
    /// What the program serves, for the status, without its addresses.
    pub serving: Value,
    /// The runs of `kirin advise`.
    pub advise: Arc<Runs>,
    /// The start of the program.
    pub started: Instant,
    /// The same by the wall clock.
    pub started_at: SystemTime,
    /// The event loops, on which applications have their connections.
    pub handles: Vec<Handle>,
    /// What the loops are to do.
    pub stage: watch::Receiver<Stage>,
    /// Where all loops wait for each other when they have drained.
    pub drained: Arc<Barrier>,
    /// Where idle connections go when the loops drain.
    pub successor: watch::Receiver<ConnectionSocket>,
}

impl Parts {
    fn near(&self) -> NearStore {
        NearStore::new(Arc::clone(&self.store), self.origin.clone())
    }

    /// Returns what all event loops share under a configuration.
    pub fn loop_resources(&self, configured: &Configured, admin: Admin) -> LoopResources {
        let sites = configured.config.gateway.sites.iter();
        let routes = sites.flat_map(|site| &site.routes);
        let paths: HashMap<u32, String> =
            routes.map(|route| (route.number, route.path.to_string())).collect();
        LoopResources {
            config: Arc::clone(&configured.config),
            listeners: Arc::clone(&configured.listeners),
            route_logs: Arc::clone(&configured.route_logs),
            route_names: Arc::clone(&configured.route_names),
            route_paths: Arc::new(paths),
            in_use: Arc::clone(&configured.in_use),
            store: self.near(),
            apps: configured.apps.clone(),
            upstreams: configured.upstreams.clone(),
            traces: configured.traces.clone(),
            admin,
            memcached: Arc::clone(&self.memcached),
            challenges: Arc::clone(&self.challenges),
            maintenance: Arc::clone(&self.maintenance),
            blocked: Arc::clone(&self.blocked),
            stage: self.stage.clone(),
            drained: Arc::clone(&self.drained),
            successor: self.successor.clone(),
        }
    }

    /// Returns what operators see under a configuration.
    pub fn admin_parts(&self, configured: &Configured) -> AdminParts {
        let Configured { config, accounts, route_names, .. } = configured;
        let access_logs: Vec<_> = configured.logs.values().cloned().collect();
        let session_cookie = config.gateway.session_cookie.iter();
        let mut serving = self.serving.clone();
        serving["urls"] = configured.urls().into();
        serving["configuration"] = configured.digest().into();
        AdminParts {
            observed: ObservedParts {
                store: Arc::clone(&self.store),
                origin: self.origin.clone(),
                apps: configured.apps.clone(),
                upstreams: configured.upstreams.clone(),
                cache_counters: self.cache_counters.clone(),
                live: self.live.clone(),
                access_logs: access_logs.clone(),
                connections: Arc::clone(&self.connections),
                program: Arc::clone(&self.program),
                maintenance: Arc::clone(&self.maintenance),
                blocked: Arc::clone(&self.blocked),
                accounts: accounts.clone(),
                listeners: (config.listeners.iter())
                    .map(|listener| listener.address.to_string())
                    .collect(),
                serving,
                started: self.started,
                process: PROCESS_COUNTS,
            },
            near: self.near(),
            machines: self.machines.clone(),
            sites: Arc::new(SiteNames::from_config(&config.gateway)),
            metrics: Arc::new(Metrics {
                store: Arc::clone(&self.store),
                origin: self.origin.clone(),
                apps: configured.apps.clone(),
                upstreams: configured.upstreams.clone(),
                cache_counters: self.cache_counters.clone(),
                loops: configured.counters.clone(),
                program: Arc::clone(&self.counters),
                access_logs,
                connections: Arc::clone(&self.connections),
                accounts: accounts.clone(),
                named: NamedParts::from_config(config, route_names),
                workers: WorkerReadings::default(),
                process: PROCESS_COUNTS,
                started: self.started_at,
            }),
            advise: Arc::clone(&self.advise),
            route_names: Arc::clone(route_names),
            session_cookies: session_cookie.map(ToString::to_string).collect(),
        }
    }
}
