//! Files that Kirin reads when it starts, and again while it runs: on HUP, and in an upgrade.
//!
//! With `user`, the start reads them as root and everything later as that user. A file that only
//! root can read would let the start succeed and fail months later, when a certificate was renewed.
//! So the start refuses it.

use std::io;
use std::path::{Path, PathBuf};

use kirin_config::{Config, ListenerTls};
use kirin_observe::served::Served;
use kirin_user::{User, is_root};
use rustix::fs::{Access, access};

/// A file that the user which serves cannot read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{file}: the user {user}, who serves, cannot read it ({error}), and Kirin reads it again on HUP and in an upgrade; {advice}",
    file = file.display(), advice = advice(file, blocked, user)
)]
pub struct Unreadable {
    file: PathBuf,
    /// The file itself, or the directory above it that the user may not enter.
    blocked: PathBuf,
    user: String,
    error: io::Error,
}

fn advice(file: &Path, blocked: &Path, user: &str) -> String {
    let (what, mode) = match file == blocked {
        true => ("let a group of this user read it", "g+r"),
        false => ("let a group of this user enter its directory", "g+x"),
    };
    let blocked = blocked.display();
    format!("{what}, such as with `chgrp {user} {blocked} && chmod {mode} {blocked}` as root")
}

/// Checks that the user that serves can read the files. Call this when the program has become that
/// user.
pub fn check(config: &Config, served: Option<&Served>) -> Result<(), Unreadable> {
    let Some(user) = &config.user else { return Ok(()) };
    let of_config = match served {
        Some(Served::Config(path)) => [std::slice::from_ref(path), &config.included_paths].concat(),
        _ => Vec::new(),
    };
    let tls = config.listeners.iter().filter_map(|listener| listener.tls.as_ref());
    let of_tls = tls.flat_map(ListenerTls::files);
    let of_origin = config.store.origin_files.iter().cloned();
    let of_routes = config.redirect_files.iter().cloned();
    let mut files = of_config.into_iter().chain(of_tls).chain(of_origin).chain(of_routes);
    files.try_for_each(|file| check_file(file, user))
}

/// Checks the files of a configuration that this program does not serve. Only root can become the
/// user that serves, so for others there is nothing to check. The program is that user afterwards.
pub fn check_as_user(config: &Config, path: &Path) -> Result<(), String> {
    let Some(user) = config.user.as_ref().filter(|_| is_root()) else { return Ok(()) };
    user.serve_as(&[]).map_err(|error| error.to_string())?;
    check(config, Some(&Served::from_config(path))).map_err(|error| error.to_string())
}

fn check_file(file: PathBuf, user: &User) -> Result<(), Unreadable> {
    let Err(error) = access(&file, Access::READ_OK) else { return Ok(()) };
    let cannot_be_entered = |directory: &&Path| access(*directory, Access::EXEC_OK).is_err();
    // The uppermost one: nothing is known of what is below.
    let above: Vec<&Path> = file.ancestors().skip(1).filter(|path| path.has_root()).collect();
    let blocked = above.into_iter().rev().find(cannot_be_entered).unwrap_or(&file).to_owned();
    Err(Unreadable { file, blocked, user: user.name(), error: error.into() })
}
