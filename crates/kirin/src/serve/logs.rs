//! The access logs. The target of each is opened once, even if several listeners write to it, and
//! reopened after it has been renamed.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use kirin_config::{AccessLogConfig, LogTarget};
use kirin_console::colours;
use kirin_server::{LogFormat, LogSink, OpenLog};
use kirin_user::{ParentDirectory, User};

/// The open targets of access logs.
pub type Logs = HashMap<LogTarget, Arc<LogSink>>;

/// An access log that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the access log {0}: {1}{hint}", hint = kirin_user::permission_hint(.0.as_ref(), .1))]
pub struct LogError(String, #[source] io::Error);

/// Opens a log. If root opens a new file for `user`, the file belongs to that user.
pub fn open(
    config: &AccessLogConfig,
    user: Option<&User>,
    open: &mut Logs,
) -> Result<OpenLog, LogError> {
    let sink = match open.get(&config.target) {
        Some(sink) => Arc::clone(sink),
        None => {
            let failed = |error| LogError(config.target.to_string(), error);
            let sink = Arc::new(open_target(&config.target, user).map_err(failed)?);
            open.insert(config.target.clone(), Arc::clone(&sink));
            sink
        }
    };
    let format = match sink.is_terminal() && colours::are_wanted() {
        true => coloured(&config.format),
        false => Arc::clone(&config.format),
    };
    Ok(OpenLog { sink, format, conditions: config.conditions.clone() })
}

/// Returns the format for people with colours. Other formats have none.
fn coloured(format: &Arc<LogFormat>) -> Arc<LogFormat> {
    if format.name() != "terminal" {
        return Arc::clone(format);
    }
    let compiled = LogFormat::compile("terminal", true, &|_| None);
    compiled.map_or_else(|_| Arc::clone(format), Arc::new)
}

fn open_target(target: &LogTarget, user: Option<&User>) -> io::Result<LogSink> {
    let stream =
        |stream: io::Result<OwnedFd>| stream.map(|stream| LogSink::stream(File::from(stream)));
    match target {
        LogTarget::Stdout => stream(io::stdout().as_fd().try_clone_to_owned()),
        LogTarget::Stderr => stream(io::stderr().as_fd().try_clone_to_owned()),
        LogTarget::File(path) => match user.filter(|_| kirin_user::is_root()) {
            Some(user) => open_as_root(path, user),
            None => LogSink::open(path),
        },
        LogTarget::Journald(socket) => Ok(LogSink::journald(socket.clone())),
        LogTarget::Syslog(server) => Ok(LogSink::syslog(server.clone())),
    }
}

fn open_as_root(path: &Path, user: &User) -> io::Result<LogSink> {
    let (file, is_new) = ParentDirectory::open(path)?.open_log()?;
    if is_new {
        user.give_file(&file)?;
    }
    Ok(LogSink::from_file(file, path))
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
