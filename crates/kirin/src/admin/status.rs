//! What the program knows of itself at the moment.

use super::Admin;
use kirin_workers::{App, AppState};
use serde_json::{Map, Value, json};

/// `GET /status`.
pub fn status(admin: &Admin) -> Value {
    let stats = admin.store.stats();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "uptime_seconds": admin.started.elapsed().as_secs(),
        "connections": admin.connections.open(),
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
        "apps": admin.apps.iter().map(|app| status_of(app)).collect::<Vec<_>>(),
    })
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
    let counters: Map<String, Value> =
        app.counters().iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    json!({
        "name": app.name(),
        "state": state,
        "workers": workers,
        "idle_workers": app.idle_workers(),
        "waiting_requests": app.waiting_requests(),
        "counters": counters,
    })
}
