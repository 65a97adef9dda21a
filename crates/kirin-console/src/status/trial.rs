//! New code that is on trial, beside the old code.

use serde_json::Value;

use super::text::{cell, number, or_zero};
use crate::table::TextTable;
use crate::units::{bytes, duration, plain};

/// Returns both sides of each trial that is going on, and of the last one.
pub fn sides(apps: &Value) -> TextTable {
    let mut table = TextTable::new(&[
        "trial",
        "code",
        "generation",
        "requests",
        "failed",
        "failing visitors",
        "slow visitors",
        "median",
        "nine of ten",
        "crashed",
        "a worker",
    ]);
    for (app, trial) in trials(apps) {
        for code in ["new", "old"] {
            let side = &trial[code];
            let time = |key: &str| side[key].as_f64().map(|time| format!("{time:.1}ms"));
            table.row(vec![
                plain(app),
                code.to_owned(),
                cell(side, "generation"),
                cell(side, "requests"),
                cell(side, "failures"),
                cell(side, "failing_visitors"),
                cell(side, "slow_visitors"),
                time("median_ms").unwrap_or_default(),
                time("usual_ms").unwrap_or_default(),
                cell(side, "crashes"),
                number(side, "worker_bytes").map(bytes).unwrap_or_default(),
            ]);
        }
    }
    table
}

/// Returns a line for each trial: how long it still takes, or how it has ended.
pub fn ends(apps: &Value) -> String {
    let line = |(app, trial): (&str, &Value)| {
        let share = plain(trial["share"].as_str().unwrap_or("?"));
        let seconds = |key| or_zero(trial, key);
        let state = match trial["state"].as_str() {
            Some("running") => {
                let left = seconds("time_seconds").saturating_sub(seconds("lasted_seconds"));
                format!("{} to go", duration(left))
            }
            state => {
                let reason = plain(trial["reason"].as_str().unwrap_or("?"));
                format!("{}: {reason}", plain(state.unwrap_or("?")))
            }
        };
        format!("trial of {}: {share} of the visitors, {state}\n", plain(app))
    };
    trials(apps).map(line).collect()
}

/// Returns the trials with the names of their applications.
fn trials(apps: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let apps = apps.as_array().into_iter().flatten();
    let known = apps.filter(|app| app["trial"].is_object());
    known.map(|app| (app["name"].as_str().unwrap_or("?"), &app["trial"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trial_shows_both_sides_and_its_end() {
        let side = |generation: u64| {
            json!({"generation": generation, "requests": 1200, "failures": 3, "crashes": 0,
                "failing_visitors": 2, "slow_visitors": 1, "median_ms": 1.25, "usual_ms": null,
                "worker_bytes": 31_457_280})
        };
        let trial = |state: &str, reason: Value| {
            json!({"state": state, "reason": reason, "share": "5%", "time_seconds": 120,
                "lasted_seconds": 30, "new": side(2), "old": side(1)})
        };
        let apps = json!([
            {"name": "web", "trial": trial("running", Value::Null)},
            {"name": "api", "trial": trial("given up", "by an operator".into())},
            {"name": "plain", "trial": null},
            {"name": "older"},
        ]);
        let text = sides(&apps).text(str::to_owned);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        for part in ["web", "new", "1,200", "1.2ms", "30"] {
            assert!(lines[1].contains(part), "{part}: {text}");
        }
        assert_eq!(
            ends(&apps),
            "trial of web: 5% of the visitors, 1 min 30 s to go\n\
             trial of api: 5% of the visitors, given up: by an operator\n"
        );
    }
}
