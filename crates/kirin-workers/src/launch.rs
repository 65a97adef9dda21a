//! How the parents of an application are launched.
//!
//! Usually Kirin starts them. But a process may have loaded the application before Kirin: it forks,
//! its child becomes the app parent, and the process itself becomes Kirin with exec(2).
//! `Plack::Handler::Kirin` does that.
//!
//! Such a parent is Kirin's child and leads a process group, like one that Kirin has started. The
//! parents of later generations run the command of the first process again, with `KIRIN_APP_PARENT`
//! set. Then the command loads the application and becomes the parent.

use std::io;
use std::os::fd::AsFd;

use kirin_files::SendfileRoots;
use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::UnboundedSender;

use crate::adapter::Adapter;
use crate::config::{AppConfig, LoadedParent};
use crate::error::AppError;
use crate::event::Event;
use crate::parent::{Parent, ParentSpec, WorkerSocket};

/// The generation of a parent that was loaded before Kirin.
const FIRST: u64 = 1;

/// How the parents of an application are launched.
pub(crate) enum ParentLaunch {
    /// Kirin starts a parent for each generation, and again when one has ended.
    Spawn(Adapter),
    /// The first parent runs already.
    Adopt(LoadedParent),
}

impl ParentLaunch {
    pub(crate) fn prepare(config: &AppConfig) -> Result<Self, AppError> {
        match &config.loaded {
            Some(loaded) => Ok(Self::Adopt(loaded.clone())),
            None => Ok(Self::Spawn(Adapter::find(config)?)),
        }
    }

    /// Returns the socket on which a generation's workers accept connections.
    pub(crate) fn socket(
        &self,
        config: &AppConfig,
        generation: u64,
    ) -> Result<WorkerSocket, AppError> {
        match self {
            Self::Adopt(loaded) if generation == FIRST => {
                Ok(WorkerSocket::of_parent(&loaded.socket))
            }
            _ => WorkerSocket::bind(config),
        }
    }

    /// Returns whether a generation can get another parent after its first.
    pub(crate) fn is_repeatable(&self, generation: u64) -> bool {
        matches!(self, Self::Spawn(_)) || generation != FIRST
    }

    pub(crate) fn parent(
        &self,
        config: &AppConfig,
        socket: &WorkerSocket,
        sendfile: &SendfileRoots,
        spec: ParentSpec,
        events: UnboundedSender<Event>,
    ) -> Result<Parent, AppError> {
        let loaded = match self {
            Self::Spawn(adapter) => {
                return Parent::spawn(config, adapter, socket, sendfile, spec, events);
            }
            Self::Adopt(loaded) => loaded,
        };
        if spec.generation != FIRST {
            let invocation = loaded.invocation.as_ref();
            let invocation =
                invocation.ok_or_else(|| AppError::LoadedBefore { app: config.name.clone() })?;
            return Parent::invoke(config, invocation, socket, spec, events);
        }
        let failed =
            |error: io::Error| AppError::system(&config.name, "control channel on STDIN", &error);
        let pid = Pid::from_raw(loaded.pid.cast_signed())
            .ok_or_else(|| failed(io::Error::other("the process id of the app parent is 0")))?;
        let control = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        let control = pipe::Receiver::from_owned_fd(control).map_err(failed)?;
        Ok(Parent::adopt(pid, control, spec.incarnation, events))
    }
}
