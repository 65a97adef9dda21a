//! The number of workers, as operators change it.

use std::sync::Arc;

use kirin_workers::{App, MAX_WORKERS};
use serde::Deserialize;

use crate::admin::unknown_name::UnknownName;

/// Another number of workers for an application.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkersRequest {
    /// The application.
    app: String,
    /// The number. Without one that of the configuration.
    workers: Option<usize>,
}

impl WorkersRequest {
    /// Makes the change. Returns what was done, or a message for the operator.
    pub fn apply(&self, apps: &[Arc<App>]) -> Result<String, String> {
        let Some(app) = apps.iter().find(|app| app.name() == self.app) else {
            let known = apps.iter().map(|app| app.name());
            return Err(UnknownName::new("app", &self.app, known).to_string());
        };
        let (_, configured) = app.wanted_workers();
        let workers = self.workers.unwrap_or(configured);
        if !(1..=MAX_WORKERS).contains(&workers) {
            return Err(format!("{workers} workers: allowed is 1 to {MAX_WORKERS}"));
        }
        app.set_workers(workers);
        Ok(format!("app {}: {workers} workers; configured are {configured}\n", self.app))
    }
}
