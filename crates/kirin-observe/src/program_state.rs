//! What an operator may know about the program as such: its file, since when it serves, and the
//! other program of an upgrade.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The state of the program. All threads share it.
#[derive(Debug, Default)]
pub struct ProgramState {
    /// The file that an upgrade starts, and which it was at the start of this program. `None`: an
    /// upgrade does not start this program's file.
    file: Option<(PathBuf, Option<Identity>)>,
    serving_since: OnceLock<Instant>,
    upgrades: Mutex<Upgrades>,
    /// Notified when the program before this one has ended.
    alone: Notify,
}

#[derive(Debug, Default)]
struct Upgrades {
    /// The new program that is about to take over.
    successor: Option<Successor>,
    /// Why the last upgrade has failed, and when.
    failure: Option<(String, Instant)>,
    /// The program before this one, as long as it has not ended.
    predecessor: Option<Predecessor>,
}

#[derive(Debug)]
struct Successor {
    pid: u32,
    step: &'static str,
    since: Instant,
}

#[derive(Debug)]
struct Predecessor {
    pid: u32,
    connections: Option<u64>,
}

impl ProgramState {
    /// Returns the state of a program that does not serve yet.
    pub fn new(file: Option<PathBuf>) -> Self {
        let file = file.map(|path| {
            let identity = Identity::of(&path);
            (path, identity)
        });
        Self { file, ..Self::default() }
    }

    /// Notes that the program serves from now on.
    pub fn serves(&self) {
        // It begins once.
        _ = self.serving_since.set(Instant::now());
    }

    /// Notes that a new program has started, and what it does.
    pub fn successor(&self, pid: u32, step: &'static str) {
        let mut upgrades = self.upgrades.lock();
        let since = upgrades.successor.as_ref().map_or_else(Instant::now, |before| before.since);
        upgrades.successor = Some(Successor { pid, step, since });
        upgrades.failure = None;
    }

    /// Notes that an upgrade has failed.
    pub fn upgrade_failed(&self, reason: &str) {
        let mut upgrades = self.upgrades.lock();
        upgrades.successor = None;
        upgrades.failure = Some((reason.to_owned(), Instant::now()));
    }

    /// Notes what the program before this one does: the connections that it still has.
    pub fn predecessor(&self, pid: u32, connections: Option<u64>) {
        self.upgrades.lock().predecessor = Some(Predecessor { pid, connections });
    }

    /// Notes that the program before this one has ended.
    pub fn predecessor_ended(&self) {
        self.upgrades.lock().predecessor = None;
        self.alone.notify_waiters();
    }

    /// Returns whether the program before this one has not ended yet.
    pub fn has_predecessor(&self) -> bool {
        self.upgrades.lock().predecessor.is_some()
    }

    /// Waits until the program before this one has ended.
    pub async fn is_alone(&self) {
        loop {
            let alone = self.alone.notified();
            if !self.has_predecessor() {
                return;
            }
            alone.await;
        }
    }

    /// Returns the state for the status.
    pub fn status(&self) -> Value {
        let upgrades = self.upgrades.lock();
        let successor = upgrades.successor.as_ref().map(|Successor { pid, step, since }| {
            json!({ "pid": pid, "step": step, "seconds": since.elapsed().as_secs() })
        });
        let failure = upgrades
            .failure
            .as_ref()
            .map(|(reason, at)| json!({ "reason": reason, "seconds_ago": at.elapsed().as_secs() }));
        let predecessor = upgrades.predecessor.as_ref().map(
            |Predecessor { pid, connections }| json!({ "pid": pid, "connections": connections }),
        );
        json!({
            "file": self.file.as_ref().map(|(path, _)| path),
            "is_replaced": self.file.as_ref().map(|(path, began)| Identity::of(path) != *began),
            "serving_seconds": self.serving_since.get().map(|since| since.elapsed().as_secs()),
            "successor": successor,
            "upgrade_failure": failure,
            "predecessor": predecessor,
        })
    }
}

/// What tells a file from one that replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    /// A script may be overwritten.
    modified: (i64, i64),
}

impl Identity {
    /// Returns `None` if there is no file.
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        let modified = (file.mtime(), file.mtime_nsec());
        Some(Self { device: file.dev(), inode: file.ino(), modified })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_at_the_same_path_replaces_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kirin");
        fs::write(&path, "one").unwrap();
        let state = ProgramState::new(Some(path.clone()));
        assert_eq!(state.status()["is_replaced"], false);
        let other = directory.path().join("other");
        fs::write(&other, "two").unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(state.status()["is_replaced"], true);
        fs::remove_file(&path).unwrap();
        assert_eq!(state.status()["is_replaced"], true);
        assert!(ProgramState::new(None).status()["is_replaced"].is_null());
    }

    #[test]
    fn an_upgrade_is_shown_from_its_start_to_its_end() {
        let state = ProgramState::new(None);
        state.successor(7, "loads");
        state.successor(7, "copies");
        assert_eq!(state.status()["successor"]["step"], "copies");
        state.upgrade_failed("it ended");
        let status = state.status();
        assert!(status["successor"].is_null(), "{status}");
        assert_eq!(status["upgrade_failure"]["reason"], "it ended");
        state.successor(8, "loads");
        assert!(state.status()["upgrade_failure"].is_null());
        state.predecessor(6, None);
        state.predecessor(6, Some(2));
        assert_eq!(state.status()["predecessor"]["connections"], 2);
        state.predecessor_ended();
        assert!(state.status()["predecessor"].is_null());
    }
}
