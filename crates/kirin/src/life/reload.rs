//! A reload: another configuration comes into force while the program serves. It comes into force
//! as a whole or not at all.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use kirin_config::difference::{Change, Difference, difference};
use kirin_config::{Config, ConfigErrors, ConfigSource, read_after};
use kirin_http::ListenAddress;
use tokio::sync::oneshot;

use crate::admin::Admin;
use crate::life::bind::{listen_where_told, share_descriptors};
use crate::life::configured::{Configured, FollowError, Renewals};
use crate::life::parts::Parts;
use crate::life::read_again::{self, Unreadable};
use crate::serve::event_loop::ServingLoop;
use crate::serve::listener_settings::partners;
use crate::serve::loop_reload::{LoopReload, LoopReloadError};

/// Why another configuration does not come into force.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The program was started without a configuration.
    #[error("this program has no configuration to read again")]
    NoSource,
    /// The configuration has errors.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// It changes what cannot change while the program runs.
    #[error("{}", describe(.0))]
    NeedsUpgrade(Vec<Change>),
    /// The user that serves cannot read one of its files.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A log or a certificate cannot be used.
    #[error(transparent)]
    Follow(#[from] FollowError),
    /// An event loop cannot serve it.
    #[error(transparent)]
    Loop(#[from] LoopReloadError),
    /// An event loop has ended.
    #[error("an event loop has ended")]
    LoopGone,
}

fn describe(changes: &[Change]) -> String {
    let changes: Vec<String> = changes.iter().map(|change| format!("  {change}")).collect();
    let these = changes.join("\n");
    format!(
        "these changes need another start of the program, so nothing is changed; `kill -USR2` \
         starts it again without loss (docs/signals.md):\n{these}"
    )
}

/// What a reload needs of the program.
pub struct Reloading<'a> {
    /// What no configuration replaces.
    pub parts: &'a Parts,
    /// The answers to operators.
    pub admin: &'a Admin,
    /// The event loops.
    pub loops: &'a [ServingLoop],
    /// The configuration that is in force.
    pub configured: &'a RefCell<Configured>,
    /// The file of the configuration. `None`: the command line says it, so it stays the same.
    pub file: Option<PathBuf>,
    /// The addresses of inherited sockets, if they replace the listener of the configuration.
    pub told: &'a [ListenAddress],
}

/// A configuration that was read and may come into force.
struct Candidate {
    config: Config,
    source: ConfigSource,
    changes: Difference,
    /// The most connections.
    connections: usize,
}

impl Reloading<'_> {
    /// Returns what would change, if the configuration could come into force.
    pub fn changes(&self) -> Result<Vec<Change>, ReloadError> {
        Ok(self.read()?.changes.changes().to_vec())
    }

    /// Reads the configuration again, and puts it into force. Returns what has changed.
    pub async fn reload(&self) -> Result<Vec<Change>, ReloadError> {
        let Candidate { config, source, changes, connections } = self.read()?;
        let (next, renewals) = {
            let before = self.configured.borrow();
            before.following(config, source, &self.parts.connections)?
        };
        let ready = self.prepare(&next).await?;
        self.commit(next, renewals, ready, connections).await;
        Ok(changes.changes().to_vec())
    }

    fn read(&self) -> Result<Candidate, ReloadError> {
        let before = self.configured.borrow();
        let before_source = before.source.as_ref().ok_or(ReloadError::NoSource)?;
        let source = match &self.file {
            Some(file) => ConfigSource::read(file)?,
            None => before_source.clone(),
        };
        let mut config = read_after(&source, &before.config)?;
        listen_where_told(&mut config, self.told);
        let connections = share_descriptors(&mut config);
        let changes = difference(before_source, &source);
        let refused: Vec<Change> = changes.needs_upgrade().cloned().collect();
        if !refused.is_empty() {
            return Err(ReloadError::NeedsUpgrade(refused));
        }
        read_again::check(&config, None)?;
        Ok(Candidate { config, source, changes, connections })
    }

    /// Has all event loops prepare a configuration. It does not come into force if what is
    /// returned is dropped.
    async fn prepare(&self, next: &Configured) -> Result<Vec<Ready>, ReloadError> {
        let resources = self.parts.loop_resources(next, self.admin.clone());
        let numbers = self.numbers(next);
        let mut asked = Vec::new();
        for (event_loop, counters) in self.loops.iter().zip(&next.counters) {
            let (prepared, is_prepared) = oneshot::channel();
            let (commit, commits) = oneshot::channel();
            let (committed, is_committed) = oneshot::channel();
            let reload = LoopReload {
                resources: resources.clone(),
                counters: Arc::clone(counters),
                numbers: Arc::clone(&numbers),
                prepared,
                commit: commits,
                committed,
            };
            event_loop.reloads.send(reload).map_err(|_| ReloadError::LoopGone)?;
            asked.push((is_prepared, Ready { commit, is_committed }));
        }
        let mut ready = Vec::new();
        for (is_prepared, of_loop) in asked {
            is_prepared.await.map_err(|_| ReloadError::LoopGone)??;
            ready.push(of_loop);
        }
        Ok(ready)
    }

    /// Returns the index that each present listener has in the other configuration.
    fn numbers(&self, next: &Configured) -> Arc<[Option<usize>]> {
        let before = self.configured.borrow();
        partners(&next.config.listeners, &before.config.listeners).into()
    }

    async fn commit(
        &self,
        next: Configured,
        renewals: Renewals,
        ready: Vec<Ready>,
        connections: usize,
    ) {
        next.set_limits(&self.parts.connections, connections);
        for (tls, renewal) in renewals {
            tls.renew(renewal);
        }
        self.admin.replace(self.parts.admin_parts(&next));
        let has_other_patterns =
            self.configured.borrow().config.url_patterns != next.config.url_patterns;
        for live in &self.parts.live {
            let patterns = has_other_patterns.then(|| next.config.url_patterns.clone());
            live.count_by(patterns, Arc::clone(&next.route_sites));
        }
        let mut committed = Vec::new();
        for Ready { commit, is_committed } in ready {
            // A loop that drains takes no configuration.
            _ = commit.send(());
            committed.push(is_committed);
        }
        for is_committed in committed {
            _ = is_committed.await;
        }
        self.configured.replace(next);
    }
}

/// An event loop that is ready for another configuration.
struct Ready {
    commit: oneshot::Sender<()>,
    is_committed: oneshot::Receiver<()>,
}
