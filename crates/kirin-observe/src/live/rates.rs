//! Rates between two snapshots.

use crate::live::snapshot::Snapshot;
use crate::live::table::{ViewCell, ViewTable, number, text};
use crate::live::units;

/// The program as of now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// The requests a second.
    pub requests: f64,
    /// The share of answers from the store or the cache.
    pub hits: f64,
    /// The bytes a second of response bodies.
    pub bytes: f64,
    /// The answers a second with a status of 500 and more.
    pub errors: f64,
    /// The open connections of clients.
    pub connections: f64,
    /// The bytes of memory and disk that are held for clients.
    pub client_bytes: f64,
    /// The workers that have a request.
    pub busy: f64,
    /// All workers.
    pub workers: f64,
    /// The requests that wait for a worker.
    pub waiting: f64,
}

impl Rates {
    /// Returns the rates between two snapshots of the same program. Without the first, they are
    /// those of the last minute.
    pub fn between(before: Option<&Snapshot>, now: &Snapshot) -> Self {
        let is_older = |before: &&Snapshot| {
            let has_same_machines = match (&before.machines, &now.machines) {
                (Some(before), Some(now)) => before.answered == now.answered,
                (before, now) => before.is_none() && now.is_none(),
            };
            has_same_machines
                && before.status.get("pid") == now.status.get("pid")
                && before.uptime_ms < now.uptime_ms
        };
        let recent = &now.live.recent;
        let (seconds, requests, total, hits, bytes, errors) = match before.filter(is_older) {
            Some(before) => {
                let (past, total) = (&before.live.total, &now.live.total);
                let since = |past: u64, now: u64| now.saturating_sub(past) as f64;
                (
                    (now.uptime_ms - before.uptime_ms) as f64 / 1000.0,
                    since(before.live.requests, now.live.requests),
                    since(past.requests, total.requests),
                    since(past.hits, total.hits),
                    since(past.bytes, total.bytes),
                    since(past.by_class[4], total.by_class[4]),
                )
            }
            None => (
                now.live.recent_seconds,
                recent.requests as f64,
                recent.requests as f64,
                recent.hits as f64,
                recent.bytes as f64,
                recent.by_class[4] as f64,
            ),
        };
        // A rate over a part of a second says nothing.
        let seconds = seconds.max(0.1);
        let clients = |key| now.number(&["clients", key]);
        let apps = || now.list("apps").iter();
        let waiting = apps().filter_map(|app| app["waiting_requests"].as_f64()).sum();
        Self {
            requests: requests / seconds,
            hits: if total > 0.0 { hits / total } else { 0.0 },
            bytes: bytes / seconds,
            errors: errors / seconds,
            connections: now.number(&["connections"]),
            client_bytes: clients("memory_bytes") + clients("disk_bytes"),
            busy: now.workers.iter().filter(|worker| !worker.path.is_empty()).count() as f64,
            workers: now.workers.len() as f64,
            waiting,
        }
    }

    /// Returns the rates as a table.
    pub fn table(&self) -> ViewTable {
        let row = |name: &str, number: f64, write: fn(f64) -> String| {
            vec![ViewCell::text(name), ViewCell::of(number, write)]
        };
        ViewTable {
            title: "now",
            columns: vec![text("", 9), number("now", 9)],
            rows: vec![
                row("requests/s", self.requests, units::count),
                row("from memory", self.hits, |share| units::share(share, 1.0)),
                row("bytes/s", self.bytes, units::bytes),
                row("errors/s", self.errors, units::count),
                row("connections", self.connections, units::count),
                row("held for clients", self.client_bytes, units::bytes),
                row("workers busy", self.busy, units::count),
                row("workers", self.workers, units::count),
                row("waiting", self.waiting, units::count),
            ],
            order: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::views::tests::snapshot;

    #[test]
    fn rates_are_differences_by_time() {
        let before = snapshot();
        let mut now = before.clone();
        now.uptime_ms += 2000;
        now.live.requests += 500;
        now.live.total.requests += 400;
        now.live.total.hits += 300;
        now.live.total.bytes += 4096;
        now.live.total.by_class[4] += 2;
        let rates = Rates::between(Some(&before), &now);
        assert_eq!(
            (rates.requests, rates.hits, rates.bytes, rates.errors),
            (250.0, 0.75, 2048.0, 1.0)
        );
        assert_eq!((rates.busy, rates.workers, rates.waiting), (1.0, 2.0, 3.0));
    }

    #[test]
    fn after_a_restart_the_rates_are_those_of_the_last_minute() {
        let now = snapshot();
        let mut other = now.clone();
        other.status["pid"] = 1.into();
        other.uptime_ms = 0;
        for before in [None, Some(&other), Some(&now)] {
            let rates = Rates::between(before, &now);
            assert_eq!(rates.requests, 12.0);
        }
    }
}
