//! The answer to `GET /top`, as the admin listener writes it and `kirin top` reads it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::live::report::LiveReport;
use crate::live::views::site_word;

/// The program at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The time since the start of the program in milliseconds.
    pub uptime_ms: u64,
    /// The requests.
    pub live: LiveReport,
    /// The workers of all applications.
    pub workers: Vec<WorkerReport>,
    /// The answer to `GET /status` of the same moment.
    pub status: Value,
    /// The machines whose numbers these are, if they are those of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<SnapshotMachines>,
}

/// The machines whose numbers a snapshot has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotMachines {
    /// The names of those that have answered.
    pub answered: Vec<String>,
    /// The names of those that have not. Their numbers are missing.
    pub silent: Vec<String>,
    /// Sentences about what is missing of those that have answered.
    pub left_out: Vec<String>,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerReport {
    /// The machine, if the snapshot is about several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The application.
    pub app: String,
    /// The process id.
    pub pid: u32,
    /// The generation of the application.
    pub generation: u64,
    /// `idle`, `busy` or `leaving`.
    pub state: String,
    /// The method of the request that it has. Empty if it has none.
    pub method: String,
    /// The path of the request, without the query.
    pub path: String,
    /// The time since it got the request, in milliseconds.
    pub running_ms: u64,
    /// The number of requests that it got.
    pub requests: u64,
    /// The time since it greeted, in seconds.
    pub age_seconds: u64,
    /// Its resident memory in bytes. Pages that it shares with its parent count.
    pub resident_bytes: u64,
}

impl Snapshot {
    /// Returns whether some requests were for a site of the configuration.
    pub fn has_sites(&self) -> bool {
        self.live.urls.iter().any(|url| !url.site.is_empty())
    }

    /// Returns whether this is about several machines.
    pub fn has_machines(&self) -> bool {
        self.machines.is_some()
    }

    /// Leaves out the URLs of all sites but one. `-` stands for routes at the top level.
    pub fn keep_site(&mut self, site: &str) {
        self.live.urls.retain(|url| site_word(&url.site) == site);
    }

    /// Leaves out the queries of slow requests, which may have secrets.
    pub fn leave_out_queries(&mut self) {
        let apps = self.status.get_mut("apps").and_then(Value::as_array_mut);
        let requests = apps.into_iter().flatten().filter_map(|app| app.get_mut("slow_requests"));
        for request in requests.filter_map(Value::as_array_mut).flatten() {
            if let Some(request) = request.as_object_mut() {
                request.remove("query");
            }
        }
    }

    /// Returns the number at this path of names in the status, or 0 if it does not exist.
    pub fn number(&self, names: &[&str]) -> f64 {
        let find = |value, name: &&str| Value::get(value, *name);
        names.iter().try_fold(&self.status, find).and_then(Value::as_f64).unwrap_or_default()
    }

    /// Returns a list of the status.
    pub fn list(&self, name: &str) -> &[Value] {
        self.status.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }
}
