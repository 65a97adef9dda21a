//! An app parent that was there before Kirin: a process has loaded the application, forked, and
//! become Kirin with exec(2), while its child serves as the app parent. `Plack::Handler::Kirin`
//! does that.
//!
//! Everything is as with a parent that Kirin has started, for it is Kirin's child and leads a
//! process group. Parents of later generations come of the command that the first process was
//! started with: run again with `KIRIN_APP_PARENT` set, it loads the application and becomes one.

use std::io;
use std::os::fd::AsFd;

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::sync::mpsc::UnboundedSender;

use crate::adapter::Adapter;
use crate::config::{AppConfig, LoadedParent};
use crate::error::AppError;
use crate::event::Event;
use crate::parent::{Birth, Parent, WorkerSocket};
use crate::sendfile::SendfileRoots;

/// The generation that is there.
const FIRST: u64 = 1;

/// Where an application's parents come from.
pub(crate) enum Launch {
    /// Kirin starts them: one for each generation, and again when one has ended.
    Spawn(Adapter),
    /// The first is there.
    Adopt(LoadedParent),
}

impl Launch {
    pub(crate) fn prepare(config: &AppConfig) -> Result<Self, AppError> {
        match &config.loaded {
            Some(loaded) => Ok(Self::Adopt(loaded.clone())),
            None => Ok(Self::Spawn(Adapter::find(config)?)),
        }
    }

    /// The socket on which a generation's workers accept.
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

    /// Whether a generation can have another parent after its first.
    pub(crate) fn is_repeatable(&self, generation: u64) -> bool {
        matches!(self, Self::Spawn(_)) || generation != FIRST
    }

    pub(crate) fn parent(
        &self,
        config: &AppConfig,
        socket: &WorkerSocket,
        sendfile: &SendfileRoots,
        birth: Birth,
        events: UnboundedSender<Event>,
    ) -> Result<Parent, AppError> {
        let loaded = match self {
            Self::Spawn(adapter) => {
                return Parent::spawn(config, adapter, socket, sendfile, birth, events);
            }
            Self::Adopt(loaded) => loaded,
        };
        if birth.generation != FIRST {
            let invocation = loaded.invocation.as_ref();
            let invocation =
                invocation.ok_or_else(|| AppError::LoadedBefore { app: config.name.clone() })?;
            return Parent::invoke(config, invocation, socket, birth, events);
        }
        let failed =
            |error: io::Error| AppError::system(&config.name, "control channel on STDIN", &error);
        let pid = Pid::from_raw(loaded.pid.cast_signed())
            .ok_or_else(|| failed(io::Error::other("the process id of the app parent is 0")))?;
        let control = io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
        let control = pipe::Receiver::from_owned_fd(control).map_err(failed)?;
        Ok(Parent::adopt(pid, control, birth.life, events))
    }
}
