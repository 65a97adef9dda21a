//! The metrics of the program and its process.

use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

use kirin_metrics::Exposition;

use super::Metrics;
use super::families as f;
use super::process::ProcessFacts;

impl Metrics {
    /// Writes the metrics of the program and its process.
    pub(super) fn write_program(&self, out: &mut Exposition) {
        out.sample(&f::BUILD, &[env!("CARGO_PKG_VERSION")], true);
        out.sample(&f::PANICS, &[], (self.process.panics)());
        let mut lost = BTreeMap::from([("program".to_owned(), (self.process.lost_log_lines)())]);
        for log in &self.access_logs {
            let name = log.path().map_or("stream".into(), |path| path.display().to_string());
            *lost.entry(name).or_default() += log.lost_lines();
        }
        for (log, lines) in lost {
            out.sample(&f::LOG_LINES_LOST, &[&log], lines);
        }
        let (reloaded, refused) = self.program.reloads();
        out.sample(&f::RELOADS, &["ok"], reloaded);
        out.sample(&f::RELOADS, &["failed"], refused);
        out.sample(&f::UPGRADES, &["ok"], self.program.is_successor);
        out.sample(&f::UPGRADES, &["failed"], self.program.upgrades_failed());
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        out.sample(&f::START_TIME, &[], started.as_secs_f64());
        let facts = ProcessFacts::read();
        for (family, value) in [
            (&f::CPU, facts.cpu_seconds.map(Into::into)),
            (&f::RESIDENT_MEMORY, facts.resident_bytes.map(Into::into)),
            (&f::OPEN_FDS, facts.open_descriptors.map(Into::into)),
            (&f::MAX_FDS, facts.max_descriptors.map(Into::into)),
        ] {
            let value: Option<kirin_metrics::SampleValue> = value;
            if let Some(value) = value {
                out.sample(family, &[], value);
            }
        }
    }
}
