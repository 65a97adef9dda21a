//! How the program was launched.

use std::path::PathBuf;

use kirin_observe::served::Served;
use kirin_sockets::Inherited;
use kirin_workers::LoadedParent;

use crate::life::background::Foreground;

/// How the program was launched.
pub struct Launch {
    /// The descriptors that the process was started with.
    pub inherited: Inherited,
    /// What the program was told to serve. Without it there is no default admin socket.
    pub served: Option<Served>,
    /// The file of the configuration, if it comes from a file. A reload reads it again.
    pub config_file: Option<PathBuf>,
    /// Whether the inherited sockets replace the listener of the configuration.
    pub listens_where_told: bool,
    /// The file for the process id.
    pub pid_file: Option<PathBuf>,
    /// The process that has loaded the only application already.
    pub loaded: Option<LoadedParent>,
    /// The file for the ports of the memcached listeners, which tests of memcached read.
    pub memcached_port_file: Option<PathBuf>,
    /// The process in front, if this one is in the background.
    pub foreground: Option<Foreground>,
}
