//! Where snapshots come from: an admin listener of this machine, or `kirin top` on another one.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use kirin_observe::live::snapshot::Snapshot;

use crate::running::RunningKirin;
use crate::running::target::{CommandTarget, without_conflict};

/// The largest snapshot in bytes.
const SNAPSHOT_LIMIT_BYTES: u64 = 16 << 20;

/// A source of snapshots.
pub struct SnapshotSource {
    origin: SnapshotOrigin,
    /// The only site whose URLs are shown. `None` shows all.
    site: Option<String>,
}

/// What snapshots are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The machine that is asked.
    OneMachine,
    /// All machines with the same origin of the store.
    AllMachines,
}

/// Where the snapshots are made.
enum SnapshotOrigin {
    /// An admin listener.
    Listener(CommandTarget, About),
    /// The output of `ssh HOST kirin top --stream`.
    Remote(Remote),
}

/// A running `ssh`. It is ended when this is dropped.
struct Remote {
    host: String,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl SnapshotSource {
    /// Returns the source that asks an admin listener.
    pub fn of(target: CommandTarget, about: About) -> Self {
        Self { origin: SnapshotOrigin::Listener(target, about), site: None }
    }

    /// Returns this source with the URLs of one site only. `None` leaves it as it is.
    pub fn only(self, site: Option<&str>) -> Self {
        Self { site: site.map(str::to_owned), ..self }
    }

    /// Starts `ssh HOST kirin top --stream`. `at` is the Kirin as the other machine sees it.
    pub fn by_ssh(
        host: &str,
        at: &RunningKirin,
        interval: f64,
        about: About,
    ) -> Result<Self, String> {
        // ssh would take it as an option, and some of its options run commands.
        if host.starts_with('-') {
            return Err(format!("--ssh {host}: a host does not begin with `-`"));
        }
        let mut remote = vec!["kirin".to_owned(), "top".into(), "--stream".into()];
        remote.extend(["--interval".into(), interval.to_string()]);
        if about == About::AllMachines {
            remote.push("--all".into());
        }
        remote.extend(at.arguments());
        let remote: Vec<String> = remote.iter().map(|word| quoted(word)).collect();
        let mut child = Command::new("ssh")
            .args(["-T", "--", host, &remote.join(" ")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot run ssh: {error}"))?;
        let stdout = child.stdout.take().ok_or("ssh has no output")?;
        let lines = BufReader::new(stdout);
        let remote = Remote { host: host.to_owned(), child, lines };
        Ok(Self { origin: SnapshotOrigin::Remote(remote), site: None })
    }

    /// Fetches a snapshot. A remote one is waited for.
    pub fn next(&mut self) -> Result<Snapshot, String> {
        let mut snapshot = match &mut self.origin {
            SnapshotOrigin::Listener(target, About::OneMachine) => parse(&target.get("/top")?)?,
            SnapshotOrigin::Listener(target, About::AllMachines) => {
                parse(&without_conflict(target.get("/machines/top"))?)?
            }
            SnapshotOrigin::Remote(remote) => remote.next()?,
        };
        if let Some(site) = &self.site {
            snapshot.keep_site(site);
        }
        Ok(snapshot)
    }

    /// Returns whether snapshots come by themselves.
    pub fn sets_the_pace(&self) -> bool {
        matches!(self.origin, SnapshotOrigin::Remote(_))
    }
}

impl Remote {
    fn next(&mut self) -> Result<Snapshot, String> {
        let mut line = String::new();
        let read = self.lines.by_ref().take(SNAPSHOT_LIMIT_BYTES).read_line(&mut line);
        match read {
            Ok(1..) => parse(&line),
            Ok(0) => {
                let words = self.last_words();
                Err(format!("ssh {}: {words}", self.host))
            }
            Err(error) => Err(format!("ssh {}: {error}", self.host)),
        }
    }

    /// Returns what ssh, or the Kirin behind it, has said at its end.
    fn last_words(&mut self) -> String {
        let mut words = String::new();
        if let Some(stderr) = self.child.stderr.take() {
            _ = stderr.take(4096).read_to_string(&mut words);
        }
        match words.trim() {
            "" => "the connection has ended".to_owned(),
            words => words.to_owned(),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn parse(text: &str) -> Result<Snapshot, String> {
    serde_json::from_str(text).map_err(|error| format!("what came is no answer of Kirin: {error}"))
}

/// Returns a word as a POSIX shell reads it unchanged.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_words_unchanged() {
        for word in ["kirin", "a b", "it's", "$(id)", "`id`", "\\", "*"] {
            let command = format!("printf %s {}", quoted(word));
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }
}
