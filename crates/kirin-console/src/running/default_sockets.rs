//! Finds the running Kirins of this user by their default admin sockets.

use std::env;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kirin_http::ListenAddress;
use kirin_observe::served::Served;
use kirin_observe::socket_directory::SocketDirectories;
use serde::Deserialize;

use super::target::CommandTarget;

/// How long a Kirin may take to say what it serves. One that is stuck must not hide the others for
/// long.
const WAIT_LIMIT: Duration = Duration::from_secs(2);

/// A Kirin that answers on a default socket.
#[derive(Debug)]
pub struct LocalKirin {
    /// Its admin listener.
    pub address: ListenAddress,
    status: Status,
}

/// The part of the status that is read here.
#[derive(Debug, Default, Deserialize)]
struct Status {
    pid: u64,
    #[serde(default)]
    serving: Serving,
}

#[derive(Debug, Default, Deserialize)]
struct Serving {
    config: Option<PathBuf>,
    target: Option<String>,
    program: Option<String>,
    #[serde(default)]
    directories: Vec<PathBuf>,
    #[serde(default)]
    urls: Vec<String>,
}

impl LocalKirin {
    /// Returns what it was told to serve, if a command line can say the same.
    pub fn served(&self) -> Option<Served> {
        match &self.status.serving {
            Serving { config: Some(path), .. } => Some(Served::from_config(path)),
            Serving { target: Some(target), .. } => Some(Served::from_target(target)),
            _ => None,
        }
    }

    /// Returns whether it serves `served`, perhaps under another name of the same file.
    fn serves(&self, served: &Served) -> bool {
        match (self.served(), served) {
            (Some(Served::Config(own)), Served::Config(wanted))
            | (Some(Served::Target(own)), Served::Target(wanted)) => {
                own == *wanted
                    || matches!((own.canonicalize(), wanted.canonicalize()), (Ok(own), Ok(wanted)) if own == wanted)
            }
            (Some(own), wanted) => own == *wanted,
            (None, _) => false,
        }
    }

    fn is_in(&self, directory: &Path) -> bool {
        let same = |own: &PathBuf| {
            own == directory || own.canonicalize().is_ok_and(|canonical| canonical == directory)
        };
        self.status.serving.directories.iter().any(same)
    }

    /// Returns a line with the process id, the option that chooses this Kirin, and its addresses.
    fn line(&self) -> String {
        let serving = &self.status.serving;
        let option = match serving {
            Serving { config: Some(path), .. } => format!("--config {}", path.display()),
            Serving { target: Some(target), .. } => format!("--target {target}"),
            Serving { program, .. } => {
                let program = program.as_deref().unwrap_or("?");
                format!("--admin {}   ({program})", self.address)
            }
        };
        let urls = serving.urls.join(" ");
        format!("  process {}   {option}   {urls}", self.status.pid).trim_end().to_owned()
    }
}

/// Returns the default socket of the Kirin that serves `served`. Without one, the error says which
/// others run.
pub fn find(served: &Served) -> Result<ListenAddress, String> {
    let name = served.socket_name();
    for directory in SocketDirectories::of_this_user().existing() {
        let address = ListenAddress::Unix(directory.join(&name));
        if status(&address).is_some_and(|running| running.serves(served)) {
            return Ok(address);
        }
    }
    let all = list();
    if let Some(running) = all.iter().find(|running| running.serves(served)) {
        return Ok(running.address.clone());
    }
    let (what, command) = match served {
        Served::Config(path) => {
            ("with this configuration", format!("kirin serve --config {}", path.display()))
        }
        Served::Target(path) => ("with this target", format!("kirin serve {}", path.display())),
        Served::Server(url) => ("with this target", format!("kirin serve {url}")),
        Served::Program { command, .. } => ("with this program", command.clone()),
    };
    Err(format!("no Kirin is running {what}; `{command}` starts it{}", others(&all)))
}

/// Returns the Kirin that serves something in the working directory, or else the only one.
pub fn only_one() -> Result<LocalKirin, String> {
    let mut all = list();
    let directory = env::current_dir().unwrap_or_default();
    let here: Vec<usize> = (0..all.len()).filter(|index| all[*index].is_in(&directory)).collect();
    match (here.as_slice(), all.len()) {
        ([index], _) => Ok(all.swap_remove(*index)),
        ([], 1) => Ok(all.swap_remove(0)),
        ([], 0) => Err(format!(
            "no Kirin of this user is running, and there is no ./kirin.toml{}",
            others(&all)
        )),
        _ => Err(format!(
            "several Kirins are running; choose one by the option in its line{}",
            others(&all)
        )),
    }
}

/// Describes the Kirins that run, for the end of an error.
fn others(all: &[LocalKirin]) -> String {
    if all.is_empty() {
        return "\nthe Kirin of another user is reached as that user or as root, or by --admin ADDRESS"
            .into();
    }
    let lines: Vec<String> = all.iter().map(LocalKirin::line).collect();
    format!("\nrunning are:\n{}", lines.join("\n"))
}

/// Returns all Kirins that answer on default sockets of this user, by their process ids.
fn list() -> Vec<LocalKirin> {
    let directories = SocketDirectories::of_this_user().existing();
    let entries = directories.iter().filter_map(|directory| fs::read_dir(directory).ok());
    let is_socket = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
    let sockets = entries.flatten().flatten().filter(is_socket);
    let mut found: Vec<LocalKirin> =
        sockets.filter_map(|entry| status(&ListenAddress::Unix(entry.path()))).collect();
    found.sort_by_key(|running| running.status.pid);
    found
}

/// Asks the Kirin at a socket what it serves. There is none on the socket of a killed Kirin.
fn status(address: &ListenAddress) -> Option<LocalKirin> {
    let answer =
        CommandTarget::at_listener(address.clone()).get_within("/status", WAIT_LIMIT).ok()?;
    let status = serde_json::from_str(&answer).ok()?;
    Some(LocalKirin { address: address.clone(), status })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(status: &str) -> LocalKirin {
        let address = ListenAddress::Unix("/run/kirin/root/x.sock".into());
        LocalKirin { address, status: serde_json::from_str(status).unwrap() }
    }

    #[test]
    fn each_listed_kirin_has_the_option_that_chooses_it() {
        for (serving, line) in [
            (
                r#""serving": {"config": "/srv/k.toml", "urls": ["http://a/"]}"#,
                "  process 7   --config /srv/k.toml   http://a/",
            ),
            (
                r#""serving": {"target": "/srv/app.psgi", "directories": ["/srv"]}"#,
                "  process 7   --target /srv/app.psgi",
            ),
            (
                r#""serving": {"program": "plackup app.psgi"}"#,
                "  process 7   --admin unix:/run/kirin/root/x.sock   (plackup app.psgi)",
            ),
            (r#""unknown": 1"#, "  process 7   --admin unix:/run/kirin/root/x.sock   (?)"),
        ] {
            assert_eq!(running(&format!(r#"{{"pid": 7, {serving}}}"#)).line(), line);
        }
    }

    #[test]
    fn a_file_is_recognized_under_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.psgi");
        fs::write(&path, "").unwrap();
        std::os::unix::fs::symlink(&path, directory.path().join("link")).unwrap();
        let status = serde_json::json!({"pid": 7, "serving": {"target": path}});
        let running = running(&status.to_string());
        let link = directory.path().join("link").display().to_string();
        assert!(running.serves(&Served::from_target(&link)));
        assert!(!running.serves(&Served::from_config(&path)));
        assert!(!running.serves(&Served::from_target("/none")));
    }
}
