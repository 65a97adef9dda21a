//! A snapshot for tests: that of the tables in `kirin-observe`.

use kirin_observe::live::snapshot::Snapshot;

/// Returns the snapshot of a small site.
pub fn snapshot() -> Snapshot {
    let text = include_str!("../../../kirin-observe/samples/snapshot.json");
    serde_json::from_str(text).expect("a snapshot")
}
