//! The servers of an origin: one, or the masters of a cluster.
//!
//! They are one set, with one receiver of reports. If one connection ends, all do.
//!
//! # What all servers have reported
//!
//! The reports of one server come in their order, and before later replies of that server. Those of
//! two servers have no order: a machine may read the number of a purge on one server while the
//! report of what it has purged is still on its way from another. So a page or a change in a
//! cluster begins under [`Servers::proven`], not under the last number that was read: after reading
//! it, a trip to every server has been made. Purges up to there have been reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{join_all, try_join_all};
use redis::Value;

use crate::address::Topology;
use crate::cluster::find_map;
use crate::config::OriginConfig;
use crate::connection::{Connection, PushReceiver};
use crate::error::{ConnectError, OriginError};
use crate::replies::unexpected;
use crate::sentinel::{NamedMaster, Sentinels};
use crate::server_facts::{ServerFacts, ServersRun};
use crate::slots::SlotMap;

/// Connections to all servers of an origin. They also end when this is dropped.
pub(crate) struct Servers {
    /// The server of the numbers, or the only one.
    pub(crate) first: Connection,
    others: Vec<Connection>,
    /// Which server has which slots, in a cluster. Its first master is the first server.
    pub(crate) map: Option<SlotMap>,
    proven: AtomicU64,
}

impl Servers {
    /// Connects to all servers, which report changes to `receiver` from then on.
    pub(crate) async fn open(
        config: &OriginConfig,
        sentinels: Option<&Sentinels>,
        receiver: PushReceiver,
    ) -> Result<Self, ConnectError> {
        let Topology::Cluster { nodes, .. } = &config.address.topology else {
            let first = Connection::open(config, sentinels, receiver).await?;
            return Ok(Self { first, others: Vec::new(), map: None, proven: AtomicU64::new(0) });
        };
        let map = find_map(config, nodes).await?;
        let opened = map.masters.iter().map(|master| {
            let master = NamedMaster { node: master.node.clone(), failover: None };
            Connection::open_master(config, master, Arc::clone(&receiver))
        });
        let mut opened = try_join_all(opened).await?.into_iter();
        let Some(first) = opened.next() else {
            return Err(ConnectError::NoCluster("it has no master".into()));
        };
        Ok(Self { first, others: opened.collect(), map: Some(map), proven: AtomicU64::new(0) })
    }

    /// Returns all servers, the first one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Connection> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns those beside the first one.
    pub(crate) fn others(&self) -> &[Connection] {
        &self.others
    }

    /// Returns whether this is a cluster, even if it has one master: a script there takes the names
    /// of one slot.
    pub(crate) fn is_cluster(&self) -> bool {
        self.map.is_some()
    }

    /// Returns the server of a name.
    pub(crate) fn of(&self, name: &[u8]) -> &Connection {
        let index = self.map.as_ref().map_or(0, |map| map.master_of(name));
        index.checked_sub(1).and_then(|index| self.others.get(index)).unwrap_or(&self.first)
    }

    /// Divides things by the servers that have their names.
    pub(crate) fn divide<T>(
        &self,
        things: impl IntoIterator<Item = T>,
        name_of: impl Fn(&T) -> Vec<u8>,
    ) -> Vec<(&Connection, Vec<T>)> {
        let Some(map) = &self.map else {
            return vec![(&self.first, things.into_iter().collect())];
        };
        let mut parts: Vec<_> = self.all().map(|server| (server, Vec::new())).collect();
        for thing in things {
            if let Some((_, part)) = parts.get_mut(map.master_of(&name_of(&thing))) {
                part.push(thing);
            }
        }
        parts.retain(|(_, part)| !part.is_empty());
        parts
    }

    /// Returns the replies to `GET` for each name. What cannot be read is an error or a null.
    pub(crate) async fn get_all(&self, names: Vec<Vec<u8>>) -> Result<Vec<Value>, OriginError> {
        if !self.is_cluster() {
            let mut command = redis::cmd("MGET");
            command.arg(names);
            return match self.first.ask(&command).await? {
                Value::Array(values) => Ok(values),
                reply => Err(unexpected("MGET", &reply)),
            };
        }
        let mut all = vec![Value::Nil; names.len()];
        let parts = self.divide(names.iter().enumerate(), |(_, name)| (*name).clone());
        let asked = parts.iter().map(async |(server, part)| {
            let mut commands = redis::pipe();
            commands.ignore_errors();
            for (_, name) in part {
                commands.cmd("GET").arg(name);
            }
            server.ask_all(&commands).await
        });
        for ((_, part), replies) in parts.iter().zip(join_all(asked).await) {
            for ((index, _), reply) in part.iter().zip(replies?) {
                if let Some(value) = all.get_mut(*index) {
                    *value = reply;
                }
            }
        }
        Ok(all)
    }

    /// Returns the number up to which all servers have reported what was purged. 0 if nothing has
    /// been proven yet.
    pub(crate) fn proven(&self) -> u64 {
        self.proven.load(Ordering::SeqCst)
    }

    /// Notes that a trip to every server was made after a number was read.
    pub(crate) fn has_proven(&self, number: u64) {
        self.proven.fetch_max(number, Ordering::SeqCst);
    }

    /// Lets all servers know the scripts.
    pub(crate) async fn load_scripts(&self) -> Result<(), OriginError> {
        try_join_all(self.all().map(Connection::load_scripts)).await.map(drop)
    }

    /// Ends all connections.
    pub(crate) fn end(&self) {
        self.all().for_each(Connection::end);
    }

    /// Returns what the servers say about themselves.
    pub(crate) fn facts(&self) -> ServerFacts {
        ServerFacts { evicts: self.evicts(), ..self.first.facts.clone() }
    }

    /// Returns whether any server may evict keys.
    pub(crate) fn evicts(&self) -> bool {
        self.all().any(|server| server.facts.evicts)
    }

    /// Returns which run of the servers this is, if they say.
    pub(crate) fn run(&self) -> Option<ServersRun> {
        let servers = self.all().map(Connection::run_of_server).collect::<Option<_>>()?;
        let slots = self.map.as_ref().map(|map| map.ranges.clone()).unwrap_or_default();
        Some(ServersRun { servers, slots })
    }
}
