//! The tables of a snapshot: workers, URLs, applications, upstreams, cache, store, slow requests.

use serde_json::Value;

use crate::live::counts::CountsReport;
use crate::live::report::UrlReport;
use crate::live::snapshot::{Snapshot, WorkerReport};
use crate::live::table::{ViewCell, ViewColumn, ViewTable, number, text};
use crate::live::units;

/// The time that the numbers of URLs are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// The last minute.
    #[default]
    LastMinute,
    /// Since the start of the program.
    SinceStart,
}

impl Span {
    /// Returns the numbers of a row that are about this time.
    pub fn counts(self, url: &UrlReport) -> &CountsReport {
        match self {
            Self::LastMinute => &url.recent,
            Self::SinceStart => &url.total,
        }
    }

    /// Returns the words for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LastMinute => "last minute",
            Self::SinceStart => "since the start",
        }
    }
}

/// Returns all tables.
pub fn all(snapshot: &Snapshot, span: Span) -> Vec<ViewTable> {
    vec![
        workers(snapshot),
        urls(snapshot, span),
        apps(snapshot),
        upstreams(snapshot),
        cache(snapshot),
        store(snapshot),
        slow(snapshot),
    ]
}

/// Returns the URLs that had requests in a time. There is a column for the site if there is a site.
pub fn urls(snapshot: &Snapshot, span: Span) -> ViewTable {
    let has_sites = snapshot.has_sites();
    let row = |url: &UrlReport| {
        let counts = span.counts(url);
        let requests = counts.requests as f64;
        let milliseconds = |time| ViewCell::of(time, units::time);
        let class = |first: usize| ViewCell::of(counts.by_class[first - 1] as f64, units::count);
        let hits = if requests > 0.0 { counts.hits as f64 / requests } else { 0.0 };
        let site = has_sites.then(|| ViewCell::text(site_word(&url.site)));
        let numbers = [
            milliseconds(counts.time_ms),
            ViewCell::of(requests, units::count),
            milliseconds(counts.time_ms / requests.max(1.0)),
            milliseconds(counts.p50_ms),
            milliseconds(counts.p95_ms),
            milliseconds(counts.p99_ms),
            ViewCell::of(counts.bytes as f64, units::bytes),
            ViewCell::of(hits, |share| units::share(share, 1.0)),
            class(4),
            class(5),
        ];
        let texts = [
            ViewCell::text(url.places.first().map_or("", |(place, _)| place)),
            ViewCell::text(format!("{} {}", url.method, url.pattern)),
        ];
        numbers.into_iter().chain(site).chain(texts).collect()
    };
    let numbers = [
        number("sum", 9),
        number("count", 9),
        number("mean", 2),
        number("p50", 3),
        number("p95", 6),
        number("p99", 7),
        number("bytes", 4),
        number("hits", 5),
        number("4xx", 1),
        number("5xx", 5),
    ];
    let site = has_sites.then(|| text("site", 8));
    let texts = [text("place", if has_sites { 7 } else { 8 }), text("URL", 9)];
    let seen = snapshot.live.urls.iter().filter(|url| span.counts(url).requests > 0);
    ViewTable {
        title: "URLs",
        columns: numbers.into_iter().chain(site).chain(texts).collect(),
        rows: seen.map(row).collect(),
        order: Some(0),
    }
}

/// Returns the word for a site. Routes at the top level have none.
pub fn site_word(site: &str) -> &str {
    if site.is_empty() { "-" } else { site }
}

/// Returns the workers. Those that are busy for the longest time are first. There is a column for
/// the machine if there are several.
pub fn workers(snapshot: &Snapshot) -> ViewTable {
    let has_machines = snapshot.has_machines();
    let row = |worker: &WorkerReport| {
        let count = |number: u64| ViewCell::of(number as f64, units::count);
        let machine = has_machines.then(|| ViewCell::text(&worker.machine));
        let cells = [
            ViewCell::text(&worker.app),
            ViewCell::of(f64::from(worker.pid), |pid| format!("{pid:.0}")),
            ViewCell::text(&worker.state),
            ViewCell::of(worker.running_ms as f64, |time| {
                if time > 0.0 { units::time(time) } else { String::new() }
            }),
            count(worker.requests),
            ViewCell::of(worker.age_seconds as f64, |age| units::duration(age as u64)),
            ViewCell::of(worker.resident_bytes as f64, units::bytes),
            count(worker.generation),
            ViewCell::text(format!("{} {}", worker.method, worker.path).trim_end()),
        ];
        machine.into_iter().chain(cells).collect()
    };
    let columns = [
        text("app", 7),
        number("pid", 9),
        text("state", 9),
        number("for", 9),
        number("requests", 5),
        number("age", 6),
        number("memory", 8),
        number("gen", 1),
        text("request", 9),
    ];
    let machine = has_machines.then(|| text("machine", 8));
    ViewTable {
        title: "workers",
        columns: machine.into_iter().chain(columns).collect(),
        rows: snapshot.workers.iter().map(row).collect(),
        order: Some(if has_machines { 4 } else { 3 }),
    }
}

/// Returns the applications.
pub fn apps(snapshot: &Snapshot) -> ViewTable {
    let row = |app: &Value| {
        let counter = |name: &str| count_of(app.get("counters"), name);
        let workers = app["workers"].as_array().map_or(0, Vec::len);
        let idle = app["idle_workers"].as_u64().unwrap_or_default();
        vec![
            ViewCell::text(app["name"].as_str().unwrap_or_default()),
            ViewCell::text(app["state"].as_str().unwrap_or_default()),
            ViewCell::of(workers as f64, units::count),
            ViewCell::of((workers as f64 - idle as f64).max(0.0), units::count),
            count_of(Some(app), "waiting_requests"),
            counter("requests"),
            counter("refused_full"),
            counter("refused_waited"),
            counter("failed"),
            counter("overdue"),
            counter("workers_ended"),
        ]
    };
    ViewTable {
        title: "apps",
        columns: vec![
            text("app", 9),
            text("state", 9),
            number("workers", 9),
            number("busy", 9),
            number("waiting", 9),
            number("requests", 8),
            number("full", 6),
            number("waited", 6),
            number("failed", 7),
            number("overdue", 7),
            number("ended", 5),
        ],
        rows: snapshot
            .list("apps")
            .iter()
            .flat_map(|app| [vec![row(app)], trial(app)].concat())
            .collect(),
        order: None,
    }
}

/// Returns the rows of both sides of a trial that is going on.
fn trial(app: &Value) -> Vec<Vec<ViewCell>> {
    let trial = &app["trial"];
    if trial["state"].as_str() != Some("running") {
        return Vec::new();
    }
    let row = |side: &str| {
        let of = |key| count_of(trial.get(side), key);
        vec![
            ViewCell::text(format!("{}, {side}", app["name"].as_str().unwrap_or_default())),
            ViewCell::text("on trial"),
            ViewCell::text(""),
            ViewCell::text(""),
            ViewCell::text(""),
            of("requests"),
            of("refused"),
            ViewCell::text(""),
            of("failures"),
            of("overdue"),
            of("crashes"),
        ]
    };
    vec![row("new"), row("old")]
}

/// Returns the servers of upstreams.
pub fn upstreams(snapshot: &Snapshot) -> ViewTable {
    let row = |name: &str, upstream: &Value, server: &Value| {
        let of = |key| count_of(Some(server), key);
        vec![
            ViewCell::text(name),
            ViewCell::text(server["server"].as_str().unwrap_or_default()),
            ViewCell::text(server["availability"].as_str().unwrap_or_default()),
            of("in_flight"),
            count_of(Some(upstream), "queued"),
            of("requests"),
            of("failures"),
            of("ejections"),
            ViewCell::of(server["latency_ms"].as_f64().unwrap_or_default(), units::time),
        ]
    };
    let upstreams = snapshot.status.get("upstreams").and_then(Value::as_object);
    let rows = upstreams.into_iter().flatten().flat_map(|(name, upstream)| {
        let servers = upstream["servers"].as_array().map_or(&[][..], Vec::as_slice);
        servers.iter().map(move |server| row(name, upstream, server))
    });
    ViewTable {
        title: "upstreams",
        columns: vec![
            text("upstream", 9),
            text("server", 9),
            text("state", 9),
            number("in flight", 8),
            number("queued", 8),
            number("requests", 7),
            number("failures", 7),
            number("ejections", 5),
            number("latency", 8),
        ],
        rows: rows.collect(),
        order: None,
    }
}

/// Returns the counters of the caches of routes.
pub fn cache(snapshot: &Snapshot) -> ViewTable {
    let counters = snapshot.status.get("cache").and_then(Value::as_object);
    let row = |(name, count): (&String, &Value)| {
        vec![
            ViewCell::text(name.replace('_', " ")),
            ViewCell::of(count.as_f64().unwrap_or_default(), units::count),
        ]
    };
    let rows = counters.into_iter().flatten().map(row).collect();
    ViewTable { title: "cache", columns: NAME_AND_COUNT.to_vec(), rows, order: None }
}

/// Returns the numbers of the store, and those of its origin if it has one.
pub fn store(snapshot: &Snapshot) -> ViewTable {
    let of = |name| snapshot.number(&["store", name]);
    let (hits, misses) = (of("get_hits"), of("get_misses"));
    let row = |name: &str, cell: ViewCell| vec![ViewCell::text(name), cell];
    let count = |name: &str, key| row(name, ViewCell::of(of(key), units::count));
    let share = |share| units::share(share, 1.0);
    let mut rows = vec![
        count("items", "items"),
        row("bytes", ViewCell::of(of("bytes"), units::bytes)),
        row("limit", ViewCell::of(of("limit_bytes"), units::bytes)),
        row("full", ViewCell::of(of("bytes") / of("limit_bytes").max(1.0), share)),
        count("tags", "tags"),
        count("gets that hit", "get_hits"),
        count("gets that missed", "get_misses"),
        row("hit ratio", ViewCell::of(hits / (hits + misses).max(1.0), share)),
        count("sets", "sets"),
        count("deletes", "deletes"),
        count("evictions", "evictions"),
    ];
    rows.extend(snapshot.status.get("origin").map_or_else(Vec::new, origin_rows));
    ViewTable { title: "store", columns: NAME_AND_COUNT.to_vec(), rows, order: None }
}

/// Returns the rows about the origin of the store: whether it is there, why not, and its numbers.
fn origin_rows(origin: &Value) -> Vec<Vec<ViewCell>> {
    let Some(state) = origin["state"].as_str() else { return Vec::new() };
    let mut rows = vec![vec![ViewCell::text("origin"), ViewCell::text(state)]];
    if let Some(reason) = origin["reason"].as_str() {
        rows.push(vec![ViewCell::text(reason), ViewCell::text("")]);
    }
    for (name, key) in [
        ("origin reads", "reads"),
        ("origin reads that hit", "read_hits"),
        ("origin writes", "writes"),
        ("origin invalidations", "invalidations"),
        ("origin timeouts", "timeouts"),
        ("origin failures", "failures"),
    ] {
        rows.push(vec![ViewCell::text(name), count_of(Some(origin), key)]);
    }
    rows
}

const NAME_AND_COUNT: [ViewColumn; 2] = [text("", 9), number("count", 9)];

/// Returns the last slow requests of all applications, each with its complete target if the
/// snapshot has it, and with the line at which it was seen. There is a column for the host if there
/// is a site, and for the machine if there are several.
pub fn slow(snapshot: &Snapshot) -> ViewTable {
    let (has_sites, has_machines) = (snapshot.has_sites(), snapshot.has_machines());
    let row = move |app: &Value, request: &Value| {
        let words = |key: &str| request[key].as_str().unwrap_or_default();
        let stack = request["stack"].as_array().map_or(&[][..], Vec::as_slice);
        let line = stack.iter().find_map(Value::as_str).unwrap_or_default();
        let query = request["query"].as_str().map_or(String::new(), |query| format!("?{query}"));
        let target = format!("{} {}{query}", words("method"), words("path"));
        let first = [
            ViewCell::of(request["time"].as_f64().unwrap_or_default(), clock_time),
            ViewCell::of(request["elapsed_ms"].as_f64().unwrap_or_default(), units::time),
            ViewCell::text(app["name"].as_str().unwrap_or_default()),
            ViewCell::of(request["pid"].as_f64().unwrap_or_default(), |pid| format!("{pid:.0}")),
        ];
        let host = has_sites.then(|| ViewCell::text(words("host")));
        let machine = has_machines.then(|| ViewCell::text(words("machine")));
        first
            .into_iter()
            .chain(machine)
            .chain(host)
            .chain([ViewCell::text(target), ViewCell::text(line)])
            .collect()
    };
    let first = [number("time", 8), number("took", 9), text("app", 6), number("pid", 5)];
    let host = has_sites.then(|| text("host", 7));
    let machine = has_machines.then(|| text("machine", 8));
    let last = [text("request", 9), text("at", 9)];
    let rows = snapshot.list("apps").iter().flat_map(|app| {
        let requests = app["slow_requests"].as_array().map_or(&[][..], Vec::as_slice);
        requests.iter().map(move |request| row(app, request))
    });
    ViewTable {
        title: "slow requests",
        columns: first.into_iter().chain(machine).chain(host).chain(last).collect(),
        rows: rows.collect(),
        order: Some(0),
    }
}

/// Returns the time of the day in UTC of a time in Unix seconds.
fn clock_time(unix_seconds: f64) -> String {
    let seconds = unix_seconds as u64 % 86400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn count_of(value: Option<&Value>, name: &str) -> ViewCell {
    let number = value.and_then(|value| value.get(name)).and_then(Value::as_f64);
    ViewCell::of(number.unwrap_or_default(), units::count)
}

#[cfg(test)]
#[path = "views_tests.rs"]
pub mod tests;
