//! The Sentinels of an origin, which say which server is the master.
//!
//! To connect, they are asked one after the other until one names a master. While there is a
//! connection, all of them are asked again and again. A master that has lost its place may not know
//! it: if it is cut off from the Sentinels and not from this machine, it goes on to take writes,
//! which are lost later.
//!
//! # Which Sentinel is right
//!
//! Sentinels may name several masters for a while, or for ever if one of them is cut off or set up
//! wrongly. Each names its master with the number of the failover that has made it one
//! (`config-epoch`). A majority of them agrees on each failover, and none gets the number of an
//! earlier one. So Kirin does what they do among themselves: the greatest number is right, and a
//! Sentinel with a smaller one has missed a failover. Kirin keeps no number from before, because
//! Sentinels that are set up again begin with 0.
//!
//! Those that have the greatest number may write the same server in different ways, such as its
//! name and its IP address. So a connection stays if one of them names its server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use redis::Value;
use rustls::ClientConfig;

use crate::address::{Credentials, NodeAddress, Topology};
use crate::config::OriginConfig;
use crate::connection::{begin_at, introduction, text_of};
use crate::error::ConnectError;
use crate::replies::{field, text, unexpected};

/// The longest time between two looks at what the Sentinels say.
const LONGEST_LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// The Sentinels of an origin.
pub(crate) struct Sentinels {
    nodes: Vec<NodeAddress>,
    /// The name of the master.
    name: String,
    credentials: Option<Credentials>,
    tls: Option<Arc<ClientConfig>>,
    /// How long all of them together may take.
    limit: Duration,
    look_interval: Duration,
    /// The index of the one that is asked first.
    first: AtomicUsize,
}

/// A master, as a Sentinel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedMaster {
    /// The server.
    pub(crate) node: NodeAddress,
    /// The number of the failover that has made it the master. `None`: the Sentinel does not say.
    pub(crate) failover: Option<u64>,
}

impl NamedMaster {
    /// Returns whether this is what was said before. A smaller number is that of Sentinels that
    /// were set up again.
    fn is_still(&self, before: &Self) -> bool {
        self.node == before.node && self.failover <= before.failover
    }
}

impl Sentinels {
    /// Returns the Sentinels of the address, if it has any.
    pub(crate) fn of(config: &OriginConfig) -> Option<Self> {
        let Topology::Sentinel { sentinels, name, .. } = &config.address.topology else {
            return None;
        };
        Some(Self {
            nodes: sentinels.clone(),
            name: name.clone(),
            credentials: config.address.sentinel_credentials.clone(),
            tls: config.tls.clone(),
            limit: config.timeout,
            look_interval: config.stale_limit.min(LONGEST_LOOK_INTERVAL),
            first: AtomicUsize::new(0),
        })
    }

    /// Returns the master that the first Sentinel with an answer names. That one is asked first the
    /// next time.
    pub(crate) async fn master(&self) -> Result<NamedMaster, ConnectError> {
        let mut answers = self.ask_until(1).await?;
        let (index, named) = answers.swap_remove(0);
        self.first.store(index, Ordering::Relaxed);
        Ok(named)
    }

    /// Asks all Sentinels. Returns the masters that those name which know the latest failover, at
    /// least one. One of these Sentinels is asked first the next time.
    pub(crate) async fn latest(&self) -> Result<Vec<NamedMaster>, ConnectError> {
        let mut answers = self.ask_until(self.nodes.len()).await?;
        let latest = answers.iter().map(|(_, named)| named.failover).max().flatten();
        answers.retain(|(_, named)| named.failover == latest);
        if let Some((index, _)) = answers.first() {
            self.first.store(*index, Ordering::Relaxed);
        }
        Ok(answers.into_iter().map(|(_, named)| named).collect())
    }

    /// Asks all Sentinels again and again. Returns when they name another server than `master`, or
    /// the same after a later failover.
    pub(crate) async fn wait_for_another(&self, master: &NamedMaster) -> NodeAddress {
        let mut was_answered = true;
        loop {
            match self.latest().await {
                Ok(latest) => {
                    was_answered = true;
                    let is_master = latest.iter().any(|named| named.is_still(master));
                    if let Some(other) = latest.into_iter().next().filter(|_| !is_master) {
                        return other.node;
                    }
                }
                // The server goes on. Only a failover would not be noticed.
                Err(error) => {
                    if was_answered {
                        tracing::warn!(reason = %error, "the Sentinels of the origin are away");
                    }
                    was_answered = false;
                }
            }
            tokio::time::sleep(self.look_interval).await;
        }
    }

    /// Asks one Sentinel after the other until so many have named a master. Returns their answers
    /// with their indexes, at least one. Each may take an equal share of the time that is left.
    async fn ask_until(&self, wanted: usize) -> Result<Vec<(usize, NamedMaster)>, ConnectError> {
        let begun = Instant::now();
        let (mut answers, mut reasons) = (Vec::new(), Vec::new());
        let in_order = self.nodes.iter().enumerate().cycle();
        let in_order = in_order.skip(self.first.load(Ordering::Relaxed)).take(self.nodes.len());
        let mut unasked = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        for (index, sentinel) in in_order {
            let share = self.limit.saturating_sub(begun.elapsed()) / unasked.max(1);
            unasked = unasked.saturating_sub(1);
            let asked = tokio::time::timeout(share, self.ask(sentinel)).await;
            match asked.unwrap_or_else(|_| Err("no answer in time".into())) {
                Ok(named) => answers.push((index, named)),
                Err(reason) => reasons.push(format!("{sentinel}: {reason}")),
            }
            if answers.len() >= wanted {
                break;
            }
        }
        if answers.is_empty() {
            let (name, reasons) = (self.name.clone(), reasons.join("; "));
            return Err(ConnectError::NoMaster { name, reasons });
        }
        Ok(answers)
    }

    /// Asks a Sentinel over a connection of its own.
    async fn ask(&self, sentinel: &NodeAddress) -> Result<NamedMaster, String> {
        let info = introduction(0, self.credentials.as_ref());
        let (mut connection, _task) =
            begin_at(sentinel, self.tls.as_ref(), &info, Arc::new(|_| {})).await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let reply = command.query_async(&mut connection).await.map_err(|error| text_of(&error))?;
        let node = node_of(&reply)?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("MASTER").arg(&self.name);
        // A Sentinel may forbid it.
        let facts = command.query_async(&mut connection).await.unwrap_or(Value::Nil);
        let failover = field(&facts, "config-epoch").and_then(|number| number.parse().ok());
        Ok(NamedMaster { node, failover })
    }
}

/// Returns the server in the reply to `SENTINEL GET-MASTER-ADDR-BY-NAME`, or what is wrong.
fn node_of(reply: &Value) -> Result<NodeAddress, String> {
    let parts = match reply {
        Value::Nil => return Err("it knows no master of this name".into()),
        Value::Array(parts) => parts.as_slice(),
        _ => &[],
    };
    let [host, port] = parts else { return Err(unexpected("SENTINEL", reply).to_string()) };
    match (text(host).to_ascii_lowercase(), text(port).parse()) {
        (host, Ok(port)) if !host.is_empty() && port > 0 => Ok(NodeAddress { host, port }),
        _ => Err(unexpected("SENTINEL", reply).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_another_one_after_a_later_failover() {
        let node = |host: &str| NodeAddress { host: host.into(), port: 6379 };
        let before = NamedMaster { node: node("a"), failover: Some(3) };
        for (host, failover, is_still) in [
            ("a", Some(3), true),
            ("a", Some(0), true),
            ("a", None, true),
            ("a", Some(5), false),
            ("b", Some(3), false),
        ] {
            let named = NamedMaster { node: node(host), failover };
            assert_eq!(named.is_still(&before), is_still, "{named:?}");
        }
    }

    #[test]
    fn a_master_has_a_host_and_a_port() {
        let part = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let node = NodeAddress { host: "::1".into(), port: 6379 };
        assert_eq!(node_of(&Value::Array(vec![part("::1"), part("6379")])), Ok(node));
        let unknown = node_of(&Value::Nil).expect_err("no master");
        assert!(unknown.contains("no master"), "{unknown}");
        for parts in
            [vec![], vec![part("a")], vec![part("a"), part("0")], vec![part(""), part("1")]]
        {
            let error = node_of(&Value::Array(parts)).expect_err("no server");
            assert!(error.contains("to SENTINEL"), "{error}");
        }
    }
}
