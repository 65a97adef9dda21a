//! The parts of the program that can be seen from outside.

use std::sync::Arc;
use std::time::Instant;

use kirin_gateway::filters::cache::counters::CacheCounters;
use kirin_gateway::routing::operator_maintenance::OperatorMaintenance;
use kirin_origin::StoreOrigin;
use kirin_proxy::Upstream;
use kirin_server::{BlockedAddresses, ConnectionCount, LogSink};
use kirin_store::Store;
use kirin_workers::App;
use serde_json::Value;

use crate::client_accounts::ClientAccounts;
use crate::live::observer::LiveLoop;
use crate::program_state::ProgramState;

/// The parts of the program that status, top and the status page are about.
#[derive(Clone)]
pub struct ObservedParts {
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
    /// The live tables of requests, by event loop.
    pub live: Vec<Arc<LiveLoop>>,
    /// The access logs of all listeners.
    pub access_logs: Vec<Arc<LogSink>>,
    /// The connections of all other listeners.
    pub connections: Arc<ConnectionCount>,
    /// The state of the program as such.
    pub program: Arc<ProgramState>,
    /// The maintenance that an operator has begun.
    pub maintenance: Arc<OperatorMaintenance>,
    /// The addresses that an operator has blocked.
    pub blocked: Arc<BlockedAddresses>,
    /// The accounts of bytes that are held for clients.
    pub accounts: ClientAccounts,
    /// The addresses of the listeners, as configured.
    pub listeners: Vec<String>,
    /// The target that the program serves, for clients that look for one of several Kirins.
    pub serving: Value,
    /// The time at which the program started.
    pub started: Instant,
    /// The counts of the process.
    pub process: ProcessCounts,
}

/// The counts that the program keeps in statics.
#[derive(Clone, Copy, Debug)]
pub struct ProcessCounts {
    /// Returns the number of panics since the start.
    pub panics: fn() -> u64,
    /// Returns the number of lines of the program's log that could not be written.
    pub lost_log_lines: fn() -> u64,
}
