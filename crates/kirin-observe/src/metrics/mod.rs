//! Metrics for Prometheus: `GET /metrics` on the admin listener, and on an address of its own.
//!
//! Each event loop counts for itself ([`observer`], [`counters`]). A request for metrics adds up
//! what the loops have counted, on a thread that serves nothing else.

mod apps;
mod connections;
pub mod counters;
mod families;
mod memory;
mod mirrors;
pub mod observer;
mod origin;
mod process;
mod program;
mod programs;
mod requests;
mod upstreams;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::StatusCode;
use kirin_cgi_programs::ProgramPool;
use kirin_config::Config;
use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::filters::mirror::counters::MirrorCounters;
use kirin_gateway::routing::in_flight_limit::InFlightLimit;
use kirin_gateway::routing::rate_limit::RateLimit;
use kirin_gateway::routing::route_names::RouteNames;
use kirin_http::{Answer, AnsweredBy, Body, RequestHead, Response};
use kirin_metrics::{Exposition, Format};
use kirin_origin::StoreOrigin;
use kirin_proxy::Upstream;
use kirin_server::{ConnectionCount, LogSink, Tls};
use kirin_store::Store;
use kirin_workers::{App, WorkerTotals};
use parking_lot::Mutex;

use crate::client_accounts::ClientAccounts;
use crate::machines::announcing::count_machines;
use crate::observed::ProcessCounts;
use counters::{LoopCounters, ProgramCounters};

/// The parts of the program that metrics are about.
pub struct Metrics {
    /// The store.
    pub store: Arc<Store>,
    /// The server that has the items of the store.
    pub origin: Option<Arc<StoreOrigin>>,
    /// The applications.
    pub apps: Vec<Arc<App>>,
    /// The upstreams.
    pub upstreams: Vec<Arc<Upstream>>,
    /// The counters of the caches, by event loop.
    pub cache_counters: Vec<Arc<CacheCounters>>,
    /// The other counters of the event loops.
    pub loops: Vec<Arc<LoopCounters>>,
    /// The counters of the main thread.
    pub program: Arc<ProgramCounters>,
    /// The access logs.
    pub access_logs: Vec<Arc<LogSink>>,
    /// The connections of all listeners.
    pub connections: Arc<ConnectionCount>,
    /// The accounts of bytes that are held for clients.
    pub accounts: ClientAccounts,
    /// The parts of the configuration that become labels of series.
    pub named: NamedParts,
    /// The state of workers, which is read from files.
    pub workers: WorkerReadings,
    /// The counts of the process.
    pub process: ProcessCounts,
    /// The time at which the program started.
    pub started: SystemTime,
}

/// The parts of the configuration that become labels.
pub struct NamedParts {
    /// The listeners: their addresses, and their TLS.
    listeners: Vec<(String, Option<Arc<Tls>>)>,
    /// The names of the routes, by their numbers.
    routes: Arc<RouteNames>,
    /// The limits on the rate of requests, each once.
    rate_limits: Vec<Arc<RateLimit>>,
    /// The limits on requests in progress, each once.
    in_flight_limits: Vec<Arc<InFlightLimit>>,
    /// The pools of CGI programs, with the numbers of their routes.
    programs: Vec<(u32, Arc<ProgramPool>)>,
    /// The counters of mirrors, with the numbers of their routes.
    mirrors: Vec<(u32, Arc<MirrorCounters>)>,
}

impl NamedParts {
    /// Takes the parts from a configuration.
    pub fn from_config(config: &Config, routes: &Arc<RouteNames>) -> Self {
        let mut seen = HashMap::new();
        let listeners = config.listeners.iter().map(|listener| {
            let address = listener.address.to_string();
            // Several listeners may have any free port.
            let number = seen.entry(address.clone()).and_modify(|number| *number += 1).or_insert(1);
            let name = if *number > 1 { format!("{address}#{number}") } else { address };
            (name, listener.tls.as_ref().map(|tls| Arc::clone(&tls.tls)))
        });
        let listeners = listeners.collect();
        let mut rate_limits = Vec::<Arc<RateLimit>>::new();
        let mut in_flight_limits = Vec::<Arc<InFlightLimit>>::new();
        let (mut programs, mut mirrors) = (Vec::new(), Vec::new());
        for route in config.gateway.sites.iter().flat_map(|site| &site.routes) {
            programs.extend(route.programs.iter().map(|of| (route.number, Arc::clone(&of.pool))));
            let counters = route.mirror.iter().map(|mirror| Arc::clone(&mirror.counters));
            mirrors.extend(counters.map(|counters| (route.number, counters)));
            for limit in &route.rules.rate_limits {
                if !rate_limits.iter().any(|known| Arc::ptr_eq(known, limit)) {
                    rate_limits.push(Arc::clone(limit));
                }
            }
            for limit in &route.rules.in_flight_limits {
                if !in_flight_limits.iter().any(|known| Arc::ptr_eq(known, limit)) {
                    in_flight_limits.push(Arc::clone(limit));
                }
            }
        }
        let routes = Arc::clone(routes);
        Self { listeners, routes, rate_limits, in_flight_limits, programs, mirrors }
    }

    /// Returns the labels of a route: its site, and its path with its conditions. Returns `None`
    /// for a route of an earlier configuration.
    fn route(&self, number: Option<u32>) -> Option<(&str, &str)> {
        let Some(number) = number else { return Some(("", "none")) };
        self.routes.get(number).map(|name| (name.site.as_str(), name.route.as_str()))
    }
}

/// The state of workers as read last.
///
/// It is read again after a second at the earliest. So a client of the metrics cannot make the
/// program read files all the time.
#[derive(Default)]
pub struct WorkerReadings(Mutex<Option<(Instant, Vec<WorkerTotals>)>>);

impl WorkerReadings {
    /// Returns the totals of each application.
    fn read(&self, apps: &[Arc<App>], now: Instant) -> Vec<WorkerTotals> {
        let mut last = self.0.lock();
        if let Some((read, totals)) = &*last
            && now.saturating_duration_since(*read).as_secs() < 1
        {
            return totals.clone();
        }
        let totals: Vec<_> = apps.iter().map(|app| app.worker_totals(now)).collect();
        *last = Some((now, totals.clone()));
        totals
    }
}

impl Metrics {
    /// Answers `GET /metrics`.
    pub fn answer(self: &Arc<Self>, request: &RequestHead<'_>) -> Answer {
        let accept = request.field("accept").and_then(|value| std::str::from_utf8(value).ok());
        let format = Format::accepted(accept.unwrap_or_default());
        let metrics = Arc::clone(self);
        Answer::later(move |_| async move {
            let machines = match &metrics.origin {
                Some(origin) => count_machines(origin).await,
                None => None,
            };
            let write = move || metrics.exposition(format, machines);
            let written = tokio::task::spawn_blocking(write).await;
            let Ok(text) = written else {
                return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
            };
            let body = Body::from(text.into_bytes());
            let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
            response.fields.push("Content-Type", format.media_type());
            response.fields.push("Cache-Control", "no-store");
            response
        })
    }

    /// Returns the text of all metrics. `machines` is the number of machines with the same origin.
    /// Reads files, so it must not run on an event loop.
    fn exposition(&self, format: Format, machines: Option<u64>) -> String {
        let mut out = Exposition::new(format);
        self.write_requests(&mut out);
        self.write_connections(&mut out);
        self.write_tls(&mut out);
        self.write_store(&mut out);
        self.write_origin(&mut out, machines);
        self.write_apps(&mut out);
        self.write_upstreams(&mut out);
        self.write_mirrors(&mut out);
        self.write_programs(&mut out);
        self.write_program(&mut out);
        out.finish()
    }
}
