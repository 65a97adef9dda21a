//! An answer of a machine: the number of the question, and a snapshot.
//!
//! The answers of all machines are at the origin for seconds, so they have a limit together.

use std::fmt::Display;

use kirin_origin::RECORD_LIMIT_BYTES;
use serde::{Deserialize, Serialize};

use crate::live::snapshot::Snapshot;

/// The most bytes of the answers of all machines together.
const ALL_LIMIT_BYTES: usize = 32 << 20;

/// The most bytes that an answer may have in any case.
const LEAST_LIMIT_BYTES: usize = 16 << 10;

/// What a machine answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineReport {
    /// The snapshot. That for a status has no URLs and no workers.
    pub snapshot: Snapshot,
    /// What was left out, because the answer would have been too long.
    pub left_out: Vec<String>,
}

/// Returns the most bytes of an answer if there are so many machines.
pub fn limit_bytes(machines: u64) -> usize {
    let machines = usize::try_from(machines).unwrap_or(usize::MAX).max(1);
    (ALL_LIMIT_BYTES / machines).clamp(LEAST_LIMIT_BYTES, RECORD_LIMIT_BYTES)
}

/// Returns the text of an answer to the question `asked`. It has the largest rows if all of them
/// would be too long.
pub fn write(asked: Option<u64>, snapshot: Snapshot, limit_bytes: usize) -> Vec<u8> {
    let (urls, workers) = (snapshot.live.urls.len(), snapshot.workers.len());
    let mut report = MachineReport { snapshot, left_out: Vec::new() };
    let mut members = Vec::new();
    loop {
        let Snapshot { live, workers: left_workers, .. } = &report.snapshot;
        report.left_out = members.clone();
        for (left, all, what) in
            [(live.urls.len(), urls, "URLs"), (left_workers.len(), workers, "workers")]
        {
            if left < all {
                report.left_out.push(format!("{} of {all} {what}", all - left));
            }
        }
        let text = format!("{}\n{}", asked.unwrap_or_default(), json(&report));
        if text.len() <= limit_bytes || !cut(&mut report.snapshot, &mut members) {
            return text.into_bytes();
        }
    }
}

/// Makes the largest part of a snapshot smaller. Returns whether there was one.
fn cut(snapshot: &mut Snapshot, members: &mut Vec<String>) -> bool {
    let urls = json(&snapshot.live.urls).len();
    let workers = json(&snapshot.workers).len();
    let largest = snapshot.status.as_object_mut().and_then(|status| {
        let size = |name: &String, value: &serde_json::Value| (json(value).len(), name.clone());
        let (size, name) = status.iter().map(|(name, value)| size(name, value)).max()?;
        Some((size, name, status))
    });
    match largest {
        Some((size, name, status)) if size >= urls.max(workers) => {
            status.remove(&name);
            members.push(format!("`{name}` of the status"));
        }
        _ if urls >= workers && !snapshot.live.urls.is_empty() => {
            // The largest sums of time are first.
            snapshot.live.urls.truncate(snapshot.live.urls.len() / 2);
        }
        _ if !snapshot.workers.is_empty() => {
            snapshot.workers.sort_by_key(|worker| std::cmp::Reverse(worker.running_ms));
            snapshot.workers.truncate(snapshot.workers.len() / 2);
        }
        _ => return false,
    }
    true
}

fn json(value: &impl Serialize) -> String {
    // A snapshot has only keys that are strings, so this does not fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the number of the question that an answer is for.
pub fn number(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    std::str::from_utf8(text.get(..end)?).ok()?.parse().ok()
}

/// Reads an answer. Returns `None` if no Kirin writes that.
pub fn read(text: &[u8]) -> Option<MachineReport> {
    let begin = text.iter().position(|byte| *byte == b'\n')? + 1;
    serde_json::from_slice(text.get(begin..)?).ok()
}

impl MachineReport {
    /// Returns a sentence about what was left out of the answer of the machine `name`, if anything
    /// was.
    pub fn note(&self, name: impl Display) -> Option<String> {
        let left_out = self.left_out.join(", ");
        (!left_out.is_empty()).then(|| format!("{name}: without {left_out}, which are too much"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::report::UrlReport;
    use crate::live::snapshot::WorkerReport;
    use crate::live::views::tests::snapshot;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let text = write(Some(7), snapshot(), RECORD_LIMIT_BYTES);
        assert_eq!(number(&text), Some(7));
        let report = read(&text).expect("a report");
        assert_eq!(report.snapshot.live, snapshot().live);
        assert_eq!((&report.snapshot.status, report.note("a")), (&snapshot().status, None));
        for other in ["", "7", "\n{}", "x\n{}", "-1\n{}"] {
            assert_eq!(number(other.as_bytes()), None, "{other}");
        }
        assert!(read(b"7\nx").is_none() && read(b"").is_none());
    }

    #[test]
    fn a_long_answer_has_the_largest_rows() {
        let mut long = snapshot();
        let url = |number: u64| UrlReport { pattern: format!("/{number}"), ..Default::default() };
        long.live.urls = (0..1000).map(url).collect();
        long.workers = vec![WorkerReport { path: "/".repeat(500), ..Default::default() }; 100];
        long.workers[70].running_ms = 1;
        let text = write(Some(7), long, 64 << 10);
        assert!(text.len() <= 64 << 10 && text.len() > 16 << 10, "{}", text.len());
        let report = read(&text).expect("a report");
        let Snapshot { live, workers, status, .. } = &report.snapshot;
        assert_eq!((&*live.urls[0].pattern, workers[0].running_ms), ("/0", 1));
        assert_eq!(status, &snapshot().status);
        let note = report.note("a").expect("a note");
        let left_out = format!(
            "{} of 1000 URLs, {} of 100 workers",
            1000 - live.urls.len(),
            100 - workers.len()
        );
        assert_eq!(note, format!("a: without {left_out}, which are too much"));
    }

    #[test]
    fn what_cannot_be_cut_into_rows_is_left_out() {
        let mut long = snapshot();
        long.status["upstreams"]["long"] = "x".repeat(100_000).into();
        let report = read(&write(None, long, 32 << 10)).expect("a report");
        assert_eq!(report.left_out, ["`upstreams` of the status"]);
        assert_eq!(report.snapshot.status["pid"], snapshot().status["pid"]);
        assert_eq!(report.snapshot.live, snapshot().live);
    }

    #[test]
    fn many_machines_have_less_room_each() {
        for (machines, bytes) in [
            (0, 256 << 10),
            (1, 256 << 10),
            (128, 256 << 10),
            (1024, 32 << 10),
            (u64::MAX, 16 << 10),
        ] {
            assert_eq!(limit_bytes(machines), bytes, "{machines}");
        }
    }
}
