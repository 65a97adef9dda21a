//! The running Kirin that a command asks: the options that choose it.

pub mod default_sockets;
pub mod target;

use std::path::{Path, PathBuf};

use clap::Args;
use kirin_config::DEFAULT_FILE;
use kirin_observe::served::Served;

use target::CommandTarget;

/// A running Kirin. Without an option it is that of ./kirin.toml; without this file, the one that
/// serves something in the working directory; else the only one of this user.
#[derive(Args)]
pub struct RunningKirin {
    /// The configuration file that it was started with [default: kirin.toml, if there is one, or
    /// else the Kirin of this directory, or the only one of this user]
    #[arg(long, short, value_name = "FILE", conflicts_with = "target")]
    config: Option<PathBuf>,
    /// The target that it was started with, as in `kirin serve app.psgi`
    #[arg(long)]
    target: Option<String>,
    /// Its admin listener: unix:PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["config", "target"])]
    admin: Option<String>,
}

impl RunningKirin {
    /// Returns the configuration file that was named, or else `./kirin.toml`, if that may be the
    /// file of the running Kirin.
    pub fn config_file(&self) -> Option<&Path> {
        let is_other = self.admin.is_some() || self.target.is_some();
        (!is_other).then(|| self.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE)))
    }

    /// Returns these arguments for a command line on another machine.
    pub fn arguments(&self) -> Vec<String> {
        let config = self.config.as_ref().map(|path| path.display().to_string());
        let options = [
            ("--config", config.as_ref()),
            ("--target", self.target.as_ref()),
            ("--admin", self.admin.as_ref()),
        ];
        let given = options.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.flat_map(|(name, value)| [name.to_owned(), value.clone()]).collect()
    }

    /// Returns the running Kirin. An error says what to do if there is none, or several.
    pub fn find(&self) -> Result<CommandTarget, String> {
        let default = Path::new(DEFAULT_FILE);
        match (&self.admin, &self.target, &self.config) {
            (Some(address), ..) => CommandTarget::at(address),
            (None, Some(target), _) => Ok(CommandTarget::of_served(&Served::from_target(target))),
            (None, None, Some(path)) => CommandTarget::of_config(path),
            (None, None, None) if default.exists() => CommandTarget::of_config(default),
            (None, None, None) => default_sockets::only_one()
                .map(|running| CommandTarget::at_listener(running.address)),
        }
    }
}
