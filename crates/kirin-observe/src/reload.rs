//! The request and the answer of `POST /reload`, which `kirin reload` and `kirin diff` send.

use serde::{Deserialize, Serialize};

/// What an operator wants.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReloadWish {
    /// Only to know what would change.
    pub dry_run: bool,
    /// To load all applications again.
    pub all_apps: bool,
    /// To load these applications again.
    pub apps: Vec<String>,
}

/// What a reload has done, or would do.
#[derive(Debug, Deserialize, Serialize)]
pub struct Reloaded {
    /// What has changed, one line for each.
    pub changes: Vec<String>,
    /// The applications that were loaded again.
    pub apps: Vec<String>,
    /// Those of them whose new code is on trial.
    #[serde(default)]
    pub trials: Vec<BegunTrial>,
}

/// A trial of new code that has begun.
#[derive(Debug, Deserialize, Serialize)]
pub struct BegunTrial {
    /// The application.
    pub app: String,
    /// The part of the visitors that get the new code.
    pub percent: f64,
    /// How long it lasts.
    pub time_seconds: u64,
}
