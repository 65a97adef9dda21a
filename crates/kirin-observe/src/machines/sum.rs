//! The sum of the snapshots of several machines, for `kirin top --all`.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use super::asking::Answers;
use super::report::MachineReport;
use super::{card, status_sum};
use crate::live::counts::CountsReport;
use crate::live::report::{MAX_REPORTED, UrlReport};
use crate::live::snapshot::{Snapshot, SnapshotMachines};

/// The most rows of URLs while the sum is made. Strangers choose the paths.
const MOST_URLS: usize = 5000;

/// The most workers of a sum.
const MOST_WORKERS: usize = 20_000;

/// The site, the method and the pattern of a row.
type UrlKey = (String, String, String);

/// The sum of some machines.
#[derive(Default)]
struct Sum {
    snapshot: Snapshot,
    machines: SnapshotMachines,
    urls: HashMap<UrlKey, UrlReport>,
    urls_left_out: usize,
    workers_left_out: usize,
    versions: BTreeSet<String>,
}

/// Returns the snapshot of all machines as JSON.
pub fn text(answers: Answers) -> String {
    json!(snapshot(answers)).to_string()
}

/// Returns the snapshot of all machines.
pub fn snapshot(answers: Answers) -> Snapshot {
    let (cards, reports): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let mut sum = Sum::default();
    for (name, report) in card::names(&cards).into_iter().zip(reports) {
        match report {
            Some(report) => sum.add(name, report),
            None => sum.machines.silent.push(name),
        }
    }
    sum.finish()
}

impl Sum {
    fn add(&mut self, name: String, report: MachineReport) {
        self.machines.left_out.extend(report.note(&name));
        let Snapshot { uptime_ms, live, workers, mut status, .. } = report.snapshot;
        self.snapshot.uptime_ms = self.snapshot.uptime_ms.saturating_add(uptime_ms);
        let sum = &mut self.snapshot.live;
        sum.requests = sum.requests.saturating_add(live.requests);
        sum.recent_seconds = sum.recent_seconds.max(live.recent_seconds);
        sum.total.add(&live.total);
        sum.recent.add(&live.recent);
        live.urls.into_iter().for_each(|url| self.add_url(url));
        for mut worker in workers {
            if self.snapshot.workers.len() == MOST_WORKERS {
                self.workers_left_out += 1;
                continue;
            }
            worker.machine.clone_from(&name);
            self.snapshot.workers.push(worker);
        }
        self.versions.extend(status["version"].as_str().map(str::to_owned));
        name_slow_requests(&mut status, &name);
        status_sum::add(&mut self.snapshot.status, status);
        self.machines.answered.push(name);
    }

    fn add_url(&mut self, url: UrlReport) {
        let key = (url.site.clone(), url.method.clone(), url.pattern.clone());
        let has_room = self.urls.len() < MOST_URLS;
        match self.urls.entry(key) {
            Entry::Occupied(mut sum) => sum.get_mut().add(url),
            Entry::Vacant(row) if has_room => _ = row.insert(url),
            Entry::Vacant(_) => self.urls_left_out += 1,
        }
    }

    fn finish(self) -> Snapshot {
        let Self { mut snapshot, mut machines, urls, .. } = self;
        let mut urls: Vec<_> = urls.into_values().collect();
        urls.sort_by(|a, b| b.total.time_ms.total_cmp(&a.total.time_ms));
        let urls_left_out = self.urls_left_out + urls.len().saturating_sub(MAX_REPORTED);
        urls.truncate(MAX_REPORTED);
        for (left_out, what) in
            [(urls_left_out, "rows of URLs"), (self.workers_left_out, "workers")]
        {
            if left_out > 0 {
                machines.left_out.push(format!("{left_out} {what}, which are too much"));
            }
        }
        let live = &mut snapshot.live;
        let counts = urls.iter_mut().flat_map(|url| [&mut url.total, &mut url.recent]);
        let without_times = |counts: &mut CountsReport| counts.times = Vec::new();
        counts.chain([&mut live.total, &mut live.recent]).for_each(without_times);
        live.urls = urls;
        // The rates of a time come from the difference of two snapshots, and the mean grows by the
        // mean of these times.
        snapshot.uptime_ms /= machines.answered.len().max(1) as u64;
        if snapshot.status.is_object() {
            let versions: Vec<_> = self.versions.into_iter().collect();
            snapshot.status["version"] = versions.join(", ").into();
        }
        snapshot.machines = Some(machines);
        snapshot
    }
}

impl UrlReport {
    /// Adds the numbers of the same row of another machine.
    fn add(&mut self, other: Self) {
        self.total.add(&other.total);
        self.recent.add(&other.recent);
        for (place, times) in other.places {
            match self.places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, sum)) => *sum = sum.saturating_add(times),
                None => self.places.push((place, times)),
            }
        }
        self.places.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    }
}

/// Writes the name of the machine to its slow requests.
fn name_slow_requests(status: &mut Value, name: &str) {
    let apps = status.get_mut("apps").and_then(Value::as_array_mut);
    let requests = apps.into_iter().flatten().filter_map(|app| app.get_mut("slow_requests"));
    for request in requests.filter_map(Value::as_array_mut).flatten() {
        if request.is_object() {
            request["machine"] = name.into();
        }
    }
}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;
