//! A cluster as an origin: its map of slots, and whether that is still right.
//!
//! To connect, the nodes of the address are asked one after the other until one has a map and calls
//! the cluster well. While there are connections, all masters are asked again and again, as
//! Sentinels are (`sentinel.rs`): a master that was replaced may not know it. If any of them tells
//! of another map or of a failover, all connections end, and everything begins again with a new
//! map. So one set of connections has one map, and what was read over it is forgotten as a whole.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use redis::Value;

use crate::address::NodeAddress;
use crate::config::OriginConfig;
use crate::connection::{Connection, begin_at, introduction, text_of};
use crate::error::{ConnectError, OriginError};
use crate::replies::text;
use crate::servers::Servers;
use crate::slots::SlotMap;

/// The longest time between two looks at the map.
const LONGEST_LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Returns the map of the first node that has one. Each may take an equal share of the time that is
/// left.
pub(crate) async fn find_map(
    config: &OriginConfig,
    nodes: &[NodeAddress],
) -> Result<SlotMap, ConnectError> {
    let begun = Instant::now();
    let mut reasons = Vec::new();
    let mut unasked = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    for node in nodes {
        let share = config.timeout.saturating_sub(begun.elapsed()) / unasked.max(1);
        unasked = unasked.saturating_sub(1);
        let asked = tokio::time::timeout(share, ask(config, node)).await;
        match asked.unwrap_or_else(|_| Err("no answer in time".into())) {
            Ok(map) => return Ok(map.beginning_with(config.names.number())),
            Err(reason) => reasons.push(format!("{node}: {reason}")),
        }
    }
    Err(ConnectError::NoCluster(reasons.join("; ")))
}

/// Asks a node over a connection of its own.
async fn ask(config: &OriginConfig, node: &NodeAddress) -> Result<SlotMap, String> {
    let info = introduction(0, config.address.credentials.as_ref());
    let (mut connection, _task) =
        begin_at(node, config.tls.as_ref(), &info, std::sync::Arc::new(|_| {})).await?;
    let replies: Result<Vec<Value>, _> = map_commands().query_async(&mut connection).await;
    let replies = replies.map_err(|error| text_of(&error))?;
    let [info, slots] = replies.as_slice() else { return Err("too few replies".into()) };
    epoch_of(info)?;
    SlotMap::parse(slots, node)
}

fn map_commands() -> redis::Pipeline {
    let mut commands = redis::pipe();
    commands.cmd("CLUSTER").arg("INFO").cmd("CLUSTER").arg("SLOTS");
    commands
}

/// Returns the number of the last failover that concerns the node (`cluster_my_epoch`), in its
/// reply to `CLUSTER INFO`. Returns what is wrong if the node does not call the cluster well.
fn epoch_of(info: &Value) -> Result<Option<u64>, String> {
    let info = text(info);
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    match field("cluster_state:") {
        Some("ok") => Ok(field("cluster_my_epoch:").and_then(|epoch| epoch.parse().ok())),
        Some(state) => Err(format!("the state of the cluster is `{state}`")),
        None => Err("it does not tell the state of the cluster".into()),
    }
}

impl Connection {
    /// Returns the number of the last failover that concerns this server of a cluster.
    pub(crate) async fn cluster_epoch(&self) -> Result<Option<u64>, String> {
        let mut command = redis::cmd("CLUSTER");
        command.arg("INFO");
        epoch_of(&self.ask(&command).await.map_err(|error| error.to_string())?)
    }

    /// Returns what is no longer as `map` and the begin of the connection say, if this server tells
    /// of anything.
    async fn change_of_map(&self, map: &SlotMap) -> Result<Option<String>, OriginError> {
        let Some(master) = &self.master else { return Ok(None) };
        let replies = self.ask_all(&map_commands()).await?;
        let [info, slots] = replies.as_slice() else { return Ok(None) };
        Ok(match (epoch_of(info), SlotMap::parse(slots, &master.node)) {
            (Err(reason), _) | (_, Err(reason)) => Some(reason),
            (Ok(epoch), _) if epoch != master.failover => Some("there was a failover".into()),
            (_, Ok(now)) if !now.has_masters_of(map) => Some("slots have moved".into()),
            _ => None,
        })
    }
}

impl Servers {
    /// Asks all masters again and again. Returns when one tells of another map. If there is no
    /// cluster, it never returns.
    pub(crate) async fn wait_for_another_map(&self, stale_limit: Duration) -> ConnectError {
        let Some(map) = &self.map else { return std::future::pending().await };
        loop {
            let asked = self.all().map(async |server| (server, server.change_of_map(map).await));
            for (server, change) in join_all(asked).await {
                // The next proof notices a server that does not answer.
                if let Ok(Some(change)) = change {
                    return ConnectError::OtherMap(format!("{}: {change}", server.address));
                }
            }
            tokio::time::sleep(stale_limit.min(LONGEST_LOOK_INTERVAL)).await;
        }
    }
}
