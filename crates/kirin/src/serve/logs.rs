//! The access logs. Each is opened once, even if several listeners write to it, and reopened after
//! it has been renamed.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use kirin_config::LogTarget;
use kirin_server::LogFile;
use kirin_user::{ParentDirectory, User};

/// The open access logs, by their targets in the configuration.
pub type Logs = HashMap<LogTarget, Arc<LogFile>>;

/// An access log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the access log {0}: {1}{hint}", hint = kirin_user::permission_hint(.0.as_ref(), .1))]
pub struct LogError(String, #[source] io::Error);

/// Opens a log, or returns the one that is open already. If root opens a new log for `user`, the
/// file belongs to that user.
pub fn open(
    target: &LogTarget,
    user: Option<&User>,
    open: &mut Logs,
) -> Result<Arc<LogFile>, LogError> {
    if let Some(file) = open.get(target) {
        return Ok(Arc::clone(file));
    }
    let stream =
        |stream: io::Result<OwnedFd>| stream.map(|stream| LogFile::stream(File::from(stream)));
    let (name, opened) = match target {
        LogTarget::Stdout => ("stdout".into(), stream(io::stdout().as_fd().try_clone_to_owned())),
        LogTarget::Stderr => ("stderr".into(), stream(io::stderr().as_fd().try_clone_to_owned())),
        LogTarget::File(path) => {
            let opened = match user.filter(|_| kirin_user::is_root()) {
                Some(user) => open_as_root(path, user),
                None => LogFile::open(path),
            };
            (path.display().to_string(), opened)
        }
    };
    let file = Arc::new(opened.map_err(|error| LogError(name, error))?);
    open.insert(target.clone(), Arc::clone(&file));
    Ok(file)
}

fn open_as_root(path: &Path, user: &User) -> io::Result<LogFile> {
    let (file, is_new) = ParentDirectory::open(path)?.open_log()?;
    if is_new {
        user.give_file(&file)?;
    }
    Ok(LogFile::from_file(file, path))
}

/// Reopens all logs after they have been renamed. If a log cannot be opened, Kirin goes on writing
/// to the renamed file.
pub fn reopen(logs: &Logs) {
    for log in logs.values() {
        let Some(path) = log.path() else { continue };
        match log.reopen() {
            Ok(()) => tracing::info!("access log {} is reopened", path.display()),
            Err(error) => {
                let hint = kirin_user::permission_hint(path, &error);
                tracing::error!(%error, "access log {} cannot be reopened{hint}", path.display());
            }
        }
    }
}
