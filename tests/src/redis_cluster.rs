//! Three redis-servers that are a cluster, with a replica for each or without.

use std::time::Duration;

use crate::{LeasedPort, RedisServer, patient, wait_for};

/// How long a node is silent before it is taken for dead. A busy machine is not to cause that.
const NODE_TIMEOUT: Duration = Duration::from_secs(2);

/// The first slots of the masters, and the end.
const SLOT_BOUNDS: [u16; 4] = [0, 5461, 10923, 16384];

/// A cluster. All servers are killed when this is dropped.
pub struct RedisCluster {
    /// The masters at the start.
    pub masters: Vec<RedisServer>,
    /// Their replicas, in the same order, or none.
    pub replicas: Vec<RedisServer>,
    /// The ports on which the nodes talk to each other, in the same order.
    bus_ports: Vec<LeasedPort>,
}

impl RedisCluster {
    /// Starts three masters, and waits until each can be used.
    ///
    /// # Panics
    /// Panics if they do not answer.
    pub fn start() -> Self {
        Self::start_with(0)
    }

    /// Starts three masters with a replica for each.
    ///
    /// # Panics
    /// Panics as [`RedisCluster::start`] does.
    pub fn with_replicas() -> Self {
        Self::start_with(3)
    }

    fn start_with(replicas: usize) -> Self {
        let timeout = patient(NODE_TIMEOUT).as_millis().to_string();
        let own = ["--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"];
        let own = [&own[..], &["--cluster-node-timeout", &timeout]].concat();
        let bus_ports: Vec<_> = (0..3 + replicas).map(|_| LeasedPort::lease()).collect();
        let started = bus_ports.iter().map(|bus_port| {
            let bus_port = bus_port.number().to_string();
            RedisServer::start_with(&[&own[..], &["--cluster-port", &bus_port]].concat())
        });
        let mut masters: Vec<_> = started.collect();
        let replicas = masters.split_off(3);
        let this = Self { masters, replicas, bus_ports };
        for (index, server) in this.masters.iter().enumerate() {
            let (first, last) = (SLOT_BOUNDS[index], SLOT_BOUNDS[index + 1] - 1);
            let range = [first.to_string(), last.to_string()];
            order(server, &["CLUSTER", "ADDSLOTSRANGE", &range[0], &range[1]]);
            order(server, &["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
        let first = &this.masters[0];
        for server in this.servers().skip(1) {
            let (port, bus) = (first.port().to_string(), this.bus_ports[0].number().to_string());
            order(server, &["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        this.wait_until_all_agree();
        for (master, replica) in this.masters.iter().zip(&this.replicas) {
            order(replica, &["CLUSTER", "REPLICATE", &id_of(master)]);
        }
        for replica in &this.replicas {
            wait_for("a replica", || {
                replica.command(&["INFO"]).contains("master_link_status:up").then_some(())
            });
        }
        wait_for("the replicas to be known", || {
            let slots = || this.servers().map(|server| server.command(&["CLUSTER", "SLOTS"]));
            let replicas = |server: &RedisServer| format!("\n{}\n", server.port());
            let knows_all = |slots: String| {
                this.replicas.iter().all(|replica| slots.contains(&replicas(replica)))
            };
            slots().all(knows_all).then_some(())
        });
        this
    }

    /// Returns the address of the cluster for Kirin. It names the masters at the start.
    pub fn address(&self) -> String {
        let nodes: Vec<_> = self.masters.iter().map(|node| node.address().to_string()).collect();
        format!("redis-cluster://{}", nodes.join(","))
    }

    /// Returns the master at the start that has a name.
    ///
    /// # Panics
    /// Panics if it does not answer.
    pub fn master_of(&self, name: &str) -> usize {
        let slot: u16 = self.slot_of(name);
        SLOT_BOUNDS.iter().rposition(|first| *first <= slot).expect("a slot")
    }

    /// Returns the slot of a name.
    ///
    /// # Panics
    /// Panics if the cluster does not answer.
    pub fn slot_of(&self, name: &str) -> u16 {
        self.masters[1].command(&["CLUSTER", "KEYSLOT", name]).parse().expect("a slot")
    }

    /// Moves a slot with its keys from one master to another one.
    ///
    /// # Panics
    /// Panics if the servers refuse.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        let slot = slot.to_string();
        let (source, target) = (&self.masters[from], &self.masters[to]);
        let (source_id, target_id) = (id_of(source), id_of(target));
        order(target, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source_id]);
        order(source, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target_id]);
        let port = target.port().to_string();
        loop {
            let keys = source.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1"]);
            if keys.is_empty() {
                break;
            }
            let moved = source.command(&["MIGRATE", "127.0.0.1", &port, &keys, "0", "10000"]);
            assert!(matches!(&*moved, "OK" | "NOKEY"), "{moved}");
        }
        for server in [target, source] {
            order(server, &["CLUSTER", "SETSLOT", &slot, "NODE", &target_id]);
        }
    }

    /// Waits until all nodes tell of a slot that a server has it.
    ///
    /// # Panics
    /// Panics if they do not.
    pub fn wait_for_owner(&self, slot: u16, owner: &RedisServer) {
        let id = id_of(owner);
        let owner_of =
            |server: &RedisServer| owner_in(&server.command(&["CLUSTER", "NODES"]), slot);
        let missing = std::fmt::from_fn(|output| {
            write!(
                output,
                "slot {slot} to be of {id}: {:?}",
                self.servers().map(owner_of).collect::<Vec<_>>()
            )
        });
        wait_for(&missing, || {
            let is_known = |server: &RedisServer| owner_of(server).as_deref() == Some(&id);
            self.servers().all(is_known).then_some(())
        });
    }

    /// Waits until a replica has taken the place of its master, which was killed.
    ///
    /// # Panics
    /// Panics if it does not.
    pub fn wait_for_failover(&self, index: usize) {
        let replica = &self.replicas[index];
        let missing = std::fmt::from_fn(|output| {
            write!(output, "replica {index} to be a master. {}", replica.log())
        });
        wait_for(&missing, || {
            let is_master = replica.command(&["ROLE"]).starts_with("master");
            let is_well = replica.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
            (is_master && is_well).then_some(())
        });
    }

    fn servers(&self) -> impl Iterator<Item = &RedisServer> {
        self.masters.iter().chain(&self.replicas)
    }

    fn wait_until_all_agree(&self) {
        let count = format!("cluster_known_nodes:{}", self.servers().count());
        let missing = std::fmt::from_fn(|output| {
            self.servers().try_for_each(|node| write!(output, "\n{}", node.log()))
        });
        wait_for(&missing, || {
            let is_ready = |server: &RedisServer| {
                let info = server.command(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains(&count)
            };
            self.servers().all(is_ready).then_some(())
        });
    }
}

/// Returns the name that the cluster has for a node.
///
/// # Panics
/// Panics if it does not answer.
fn id_of(server: &RedisServer) -> String {
    server.command(&["CLUSTER", "MYID"])
}

/// Sends a command whose answer is `OK`.
///
/// # Panics
/// Panics if it is something else.
fn order(server: &RedisServer, words: &[&str]) {
    assert_eq!(server.command(words), "OK", "{words:?}");
}

/// Returns the master of a slot in the reply to `CLUSTER NODES`.
fn owner_in(nodes: &str, slot: u16) -> Option<String> {
    nodes.lines().find_map(|line| {
        let mut words = line.split(' ');
        let id = words.next()?;
        let has_slot = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            matches!((first.parse(), last.parse()), (Ok(a), Ok(b)) if (a..=b).contains(&slot))
        };
        words.skip(7).any(has_slot).then(|| id.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_moves_with_its_keys_and_a_replica_takes_over() {
        let mut cluster = RedisCluster::with_replicas();
        let (slot, from) = (cluster.slot_of("a"), cluster.master_of("a"));
        let to = (from + 1) % 3;
        assert_eq!(cluster.masters[from].command(&["SET", "a", "1"]), "OK");
        cluster.move_slot(slot, from, to);
        cluster.wait_for_owner(slot, &cluster.masters[to]);
        assert_eq!(cluster.masters[to].command(&["GET", "a"]), "1");
        cluster.masters[to].command(&["WAIT", "1", "0"]);
        cluster.masters[to].kill();
        cluster.wait_for_failover(to);
        assert_eq!(cluster.replicas[to].command(&["GET", "a"]), "1");
    }
}
