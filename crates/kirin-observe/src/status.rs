//! The status of the program, as JSON.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_client_bytes::{AccountFigures, Resource};
use kirin_gateway::filters::cache::counters;
use kirin_gateway::routing::access::Maintenance;
use kirin_gateway::routing::operator_maintenance::HeldRoutes;
use kirin_origin::{OriginState, StoreOrigin};
use kirin_proxy::{Availability, ServerStatus, Upstream};
use kirin_server::{Block, network_name};
use kirin_workers::{App, AppState, RingStatus, SlowRequest, TrialEnd, TrialReport, TrialSide};
use serde_json::{Map, Value, json};

use crate::observed::ObservedParts;

/// Returns the answer to `GET /status`.
pub fn status(observed: &ObservedParts) -> Value {
    let stats = observed.store.stats();
    let upstreams: Map<String, Value> = observed
        .upstreams
        .iter()
        .map(|upstream| (upstream.name().to_owned(), status_of_upstream(upstream)))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "program": observed.program.status(),
        "serving": observed.serving,
        "uptime_seconds": observed.started.elapsed().as_secs(),
        "connections": observed.connections.open(),
        "clients": status_of_clients(observed),
        "panics": (observed.process.panics)(),
        "log_lines_lost": (observed.process.lost_log_lines)(),
        "access_log_lines_lost": observed.access_logs.iter().map(|log| log.lost_lines()).sum::<u64>(),
        "store": {
            "items": stats.curr_items,
            "bytes": stats.bytes,
            "limit_bytes": stats.limit_maxbytes,
            "tags": stats.curr_tags,
            "get_hits": stats.get_hits,
            "get_misses": stats.get_misses,
            "sets": stats.cmd_set,
            "deletes": stats.delete_hits,
            "evictions": stats.evictions,
        },
        "origin": observed.origin.as_deref().map(status_of_origin),
        "apps": observed.apps.iter().map(|app| status_of(app)).collect::<Vec<_>>(),
        "upstreams": upstreams,
        "maintenance": status_of_maintenance(observed),
        "blocked": status_of_blocks(observed),
        "cache": counters::sum(&observed.cache_counters),
    })
}

/// Returns the origin of the store. Neither its address nor a reason has a password.
fn status_of_origin(origin: &StoreOrigin) -> Value {
    let mut status = json!({ "address": origin.config().address.to_string() });
    for (name, value) in origin.counters().values() {
        status[name] = value.into();
    }
    match origin.state() {
        OriginState::Connected { server } => {
            status["state"] = "connected".into();
            status["server"] = server.name.into();
            status["version"] = server.version.into();
            status["evicts"] = server.evicts.into();
        }
        OriginState::Away { reason } => {
            status["state"] = "away".into();
            status["reason"] = reason.into();
        }
    }
    status
}

/// Returns the maintenance that an operator has begun.
fn status_of_maintenance(observed: &ObservedParts) -> Value {
    let of_one = |(held, maintenance): &(HeldRoutes, Arc<Maintenance>)| {
        json!({
            "held": held.to_string(),
            "site": held.site,
            "route": held.route,
            "page": maintenance.page,
            "retry_after_seconds": maintenance.retry_after_seconds,
            "allow": maintenance.except.names(),
        })
    };
    observed.maintenance.list().iter().map(of_one).collect()
}

/// Returns the addresses that an operator has blocked.
fn status_of_blocks(observed: &ObservedParts) -> Value {
    let now = Instant::now();
    let of_one = |block: Block, on_all_machines: bool| {
        json!({
            "network": network_name(block.network),
            "seconds_left": block.end.saturating_duration_since(now).as_secs(),
            "on_all_machines": on_all_machines,
        })
    };
    let (own, shared) = (observed.blocked.list(now), observed.blocked.list_shared(now));
    let own = own.into_iter().map(|block| of_one(block, false));
    own.chain(shared.into_iter().map(|block| of_one(block, true))).collect()
}

/// Returns the bytes that are held for clients.
fn status_of_clients(observed: &ObservedParts) -> Value {
    let listeners: Map<String, Value> = observed
        .listeners
        .iter()
        .zip(&observed.accounts.listeners)
        .map(|(address, account)| {
            (address.clone(), status_of_bytes(|resource| account.observed(resource)))
        })
        .collect();
    let mut status = status_of_bytes(|resource| observed.accounts.all.observed(resource));
    status["connections_cut"] = observed.accounts.all.cut().into();
    status["listeners"] = listeners.into();
    status
}

fn status_of_bytes(observed: impl Fn(Resource) -> AccountFigures) -> Value {
    let (memory, disk) = (observed(Resource::Memory), observed(Resource::Disk));
    json!({
        "memory_bytes": memory.held,
        "memory_limit_bytes": memory.limit,
        "memory_refused": memory.refused,
        "disk_bytes": disk.held,
        "disk_limit_bytes": disk.limit,
        "disk_refused": disk.refused,
    })
}

/// Returns the servers of an upstream, with their present addresses.
fn status_of_upstream(upstream: &Upstream) -> Value {
    let servers = upstream.server_status().iter().map(status_of_server).collect::<Vec<_>>();
    let queue = upstream.queue_status();
    let average = milliseconds(queue.wait_total) / queue.waited.max(1) as f64;
    json!({
        "servers": servers,
        "retries": upstream.retried(),
        "queued": queue.waiting,
        "waited": queue.waited,
        "wait_ms_average": average,
        "wait_ms_longest": milliseconds(queue.wait_longest),
        "queue_full": queue.full,
        "queue_timeouts": queue.timeouts,
        "queue_clients_gone": queue.clients_gone,
    })
}

fn status_of_server(server: &ServerStatus) -> Value {
    let availability = match server.availability {
        Availability::Available => "available",
        Availability::Ejected => "ejected",
        Availability::Unhealthy => "unhealthy",
        Availability::Draining => "draining",
        Availability::Disabled => "disabled",
    };
    json!({
        "server": server.name,
        "availability": availability,
        "in_flight": server.in_flight,
        "max_in_flight": server.max_in_flight.map(u32::from),
        "weight": server.weight,
        "configured_weight": server.configured_weight,
        "requests": server.requests,
        "failures": server.failures,
        "ejections": server.ejections,
        "failures_in_a_row": server.failures_in_a_row,
        "ejected_ms": server.ejected_for.as_millis() as u64,
        "latency_ms": milliseconds(server.latency),
    })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

fn status_of(app: &App) -> Value {
    let state = match app.state() {
        AppState::Starting => "starting",
        AppState::Ready => "ready",
        AppState::Failed(_) => "failed",
        AppState::Stopped => "stopped",
    };
    let mut workers = app.worker_pids();
    workers.sort_unstable();
    let (wanted, configured) = app.wanted_workers();
    let counters: Map<String, Value> =
        app.counters().iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    json!({
        "name": app.name(),
        "state": state,
        "workers": workers,
        "wanted_workers": wanted,
        "configured_workers": configured,
        "idle_workers": app.idle_workers(),
        "waiting_requests": app.waiting_requests(),
        "rings": app.ring_status().iter().map(status_of_ring).collect::<Vec<_>>(),
        "counters": counters,
        "trial": app.trial(Instant::now()).as_ref().map(status_of_trial),
        "profile_samples": app.profile_samples(),
        "slow_requests": app.slow_requests().iter().map(status_of_slow).collect::<Vec<_>>(),
    })
}

/// Returns a trial: the one that is going on, or the last one.
fn status_of_trial(trial: &TrialReport) -> Value {
    let state = match &trial.end {
        None => "running",
        Some(TrialEnd { is_promoted: true, .. }) => "promoted",
        Some(TrialEnd { is_promoted: false, .. }) => "given up",
    };
    json!({
        "state": state,
        "reason": trial.end.as_ref().map(|end| &end.reason),
        "share": format!("{}%", trial.config.percent),
        "time_seconds": trial.config.time.as_secs(),
        "lasted_seconds": trial.lasted.as_secs(),
        "new": status_of_side(&trial.new),
        "old": status_of_side(&trial.old),
    })
}

fn status_of_side(side: &TrialSide) -> Value {
    let milliseconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1000.0);
    json!({
        "generation": side.generation,
        "requests": side.requests,
        "failures": side.failures(),
        "errors": side.errors,
        "lost": side.lost,
        "overdue": side.overdue,
        "refused": side.refused,
        "failing_visitors": side.failing_visitors,
        "slow_visitors": side.slow_visitors,
        "crashes": side.crashes,
        "median_ms": milliseconds(side.median),
        "usual_ms": milliseconds(side.usual),
        "worker_bytes": side.worker_bytes,
    })
}

fn status_of_ring(ring: &RingStatus) -> Value {
    json!({
        "generation": ring.generation,
        "workers": ring.workers,
        "requests": ring.requests,
        "slots": ring.slots,
        "memory_bytes": ring.resident_bytes,
        "max_memory_bytes": ring.bytes,
    })
}

fn status_of_slow(slow: &SlowRequest) -> Value {
    let stack: Vec<&str> = slow.stack.iter().map(AsRef::as_ref).collect();
    json!({
        "time": slow.time,
        "method": slow.method,
        "host": slow.host,
        "path": slow.path,
        "query": slow.query,
        "elapsed_ms": slow.elapsed.as_millis() as u64,
        "pid": slow.pid,
        "stack": stack,
    })
}
