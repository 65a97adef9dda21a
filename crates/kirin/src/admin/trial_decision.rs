//! The decision of an operator about new code that is on trial.

use std::sync::Arc;
use std::time::Instant;

use kirin_workers::{App, TrialDecision};
use serde::Deserialize;

use crate::admin::unknown_name::UnknownName;

/// A decision about the new code of some applications.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialRequest {
    decision: Decision,
    /// The applications. All whose new code is on trial, if none is named.
    #[serde(default)]
    apps: Vec<String>,
}

/// A decision as it is sent.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Promote,
    GiveUp,
}

impl TrialRequest {
    /// Carries it out. Returns what was done, or a message for the operator.
    pub async fn apply(&self, apps: &[Arc<App>]) -> Result<String, String> {
        let known = || apps.iter().map(|app| app.name());
        if let Some(unknown) = self.apps.iter().find(|name| !known().any(|one| one == **name)) {
            return Err(UnknownName::new("app", unknown, known()).to_string());
        }
        let is_named = |app: &&Arc<App>| self.apps.iter().any(|name| name == app.name());
        let wanted: Vec<_> = match self.apps.is_empty() {
            true => apps.iter().filter(|app| app.has_trial()).collect(),
            false => apps.iter().filter(is_named).collect(),
        };
        if let Some(app) = wanted.iter().find(|app| !app.has_trial()) {
            return Err(no_trial(app));
        }
        if wanted.is_empty() {
            return Err("no application has new code on trial".to_owned());
        }
        let (decision, done) = match self.decision {
            Decision::Promote => (TrialDecision::Promote, "the new code serves everybody"),
            Decision::GiveUp => (TrialDecision::GiveUp, "the new code is given up"),
        };
        let mut lines = String::new();
        for app in wanted {
            // The trial may have ended meanwhile.
            if !app.decide_trial(decision).await {
                return Err(format!("{lines}{}", no_trial(app)));
            }
            lines.push_str(&format!("app `{}`: {done}\n", app.name()));
            if let Some(trial) = app.trial(Instant::now()) {
                lines.push_str(&format!("  new: {}\n  old: {}\n", trial.new, trial.old));
            }
        }
        Ok(lines)
    }
}

fn no_trial(app: &App) -> String {
    format!("app `{}` has no new code on trial", app.name())
}
