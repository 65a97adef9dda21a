//! A redis-server, its replica, and three Sentinels that put the replica in its place.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use crate::{RedisServer, patient, wait_for_sentinels};

/// The name by which the Sentinels know the master.
pub const MASTER_NAME: &str = "main";

/// How long a master is silent before it is taken for dead. A busy machine is not to cause that.
const DOWN_AFTER: Duration = Duration::from_secs(1);

/// Two servers that Sentinels watch. All are killed when this is dropped.
pub struct RedisSentinels {
    /// The servers. The first one is the master at the start.
    pub servers: [RedisServer; 2],
    /// The Sentinels. Two of them must agree on a failover.
    pub sentinels: [RedisServer; 3],
}

impl RedisSentinels {
    /// Starts all of them, and waits until each knows the others.
    ///
    /// # Panics
    /// Panics if they do not answer.
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts Sentinels with more lines in their configuration.
    ///
    /// # Panics
    /// Panics as [`RedisSentinels::start`] does.
    pub fn start_with(configuration: &str) -> Self {
        // A master would wait five seconds for more replicas.
        let at_once = ["--repl-diskless-sync-delay", "0"];
        let master = RedisServer::start_with(&at_once);
        let port = master.port().to_string();
        let replicates = [&at_once[..], &["--replicaof", "127.0.0.1", &port]].concat();
        let replica = RedisServer::start_with(&replicates);
        wait_for_sentinels("the replica", || {
            replica.command(&["INFO"]).contains("master_link_status:up").then_some(())
        });
        wait_for_sentinels("the replica at its master", || {
            master.command(&["INFO"]).contains("state=online").then_some(())
        });
        let lines = sentinel_lines(master.port(), 2) + configuration;
        let start = |_| start_sentinel(&lines);
        let this = Self { servers: [master, replica], sentinels: [0, 1, 2].map(start) };
        this.wait_until_all_are_known();
        this
    }

    /// Returns the address of the master for Kirin.
    pub fn address(&self) -> String {
        let sentinels: Vec<_> =
            self.sentinels.iter().map(|sentinel| sentinel.address().to_string()).collect();
        format!("redis-sentinel://{}/{MASTER_NAME}", sentinels.join(","))
    }

    /// Lets the replica and its master change their places, although nothing is wrong, and waits
    /// until all Sentinels say so.
    ///
    /// # Panics
    /// Panics if they do not.
    pub fn fail_over(&self) {
        let before = self.master();
        // It is refused while the Sentinels have not heard of the replica for a while.
        wait_for_sentinels("the failover to begin", || {
            let reply = self.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER_NAME]);
            (reply == "OK").then_some(())
        });
        self.wait_for_master(1 - before);
    }

    /// Cuts a server off from the Sentinels: it refuses the commands that only they send. Kirin
    /// still reaches it.
    ///
    /// # Panics
    /// Panics if it does not answer.
    pub fn cut_off(&self, index: usize) {
        let rules = "-ping -info -publish -subscribe -multi -slaveof -replicaof -client|kill";
        let words = ["ACL", "SETUSER", "default"].into_iter().chain(rules.split(' '));
        assert_eq!(self.servers[index].command(&words.collect::<Vec<_>>()), "OK");
    }

    /// Returns the index of the server that the first Sentinel names.
    ///
    /// # Panics
    /// Panics if it names none.
    pub fn master(&self) -> usize {
        let named = master_of(&self.sentinels[0]);
        let is_named = |server: &RedisServer| named.ends_with(&format!("\n{}", server.port()));
        self.servers.iter().position(is_named).unwrap_or_else(|| panic!("the master is {named}"))
    }

    /// Waits until all Sentinels name a server.
    ///
    /// # Panics
    /// Panics if they do not.
    pub fn wait_for_master(&self, index: usize) {
        let wanted = format!("127.0.0.1\n{}", self.servers[index].port());
        let what = format!("server {index} to be the master");
        wait_for_sentinels(&self.with_logs(&what), || {
            self.sentinels.iter().all(|sentinel| master_of(sentinel) == wanted).then_some(())
        });
    }

    /// Waits until the server that is not the master follows it. Until then it takes writes, which
    /// are lost. On a busy machine the Sentinels may have taken the new master for dead meanwhile,
    /// and the old one is the master again.
    ///
    /// # Panics
    /// Panics if neither becomes a replica.
    pub fn wait_for_replica(&self) {
        wait_for_sentinels(&self.with_logs("a replica"), || {
            let other = &self.servers[1 - self.master()];
            // The Sentinels end the connections of a server that becomes a replica, this one too.
            other.try_command(&["ROLE"]).ok()?.starts_with("slave").then_some(())
        });
    }

    /// Returns what is waited for, with what the Sentinels have logged.
    fn with_logs(&self, what: &str) -> impl Display {
        std::fmt::from_fn(move |output| {
            writeln!(output, "{what}. ")?;
            self.sentinels.iter().try_for_each(|sentinel| writeln!(output, "{}", sentinel.log()))
        })
    }

    fn wait_until_all_are_known(&self) {
        for sentinel in &self.sentinels {
            wait_for_sentinels("the Sentinels to know each other", || {
                let known = sentinel.command(&["INFO", "sentinel"]);
                known.contains("status=ok").then_some(())?;
                known.contains("slaves=1,sentinels=3").then_some(())
            });
        }
    }
}

/// Starts a Sentinel with these lines, which looks at its servers more often than the usual ones.
///
/// # Panics
/// Panics if it does not answer.
pub fn start_sentinel(lines: &str) -> RedisServer {
    let sentinel = RedisServer::start_sentinel(lines);
    // Times in milliseconds. A Sentinel that was not run for `tilt-trigger` does nothing for half a
    // minute, which a busy machine is not to cause.
    let times = [
        ("info-period", "500"),
        ("ping-period", "200"),
        ("publish-period", "200"),
        ("ask-period", "200"),
        ("tilt-trigger", "60000"),
    ];
    for (name, milliseconds) in times {
        sentinel.command(&["SENTINEL", "DEBUG", name, milliseconds]);
    }
    sentinel
}

/// Returns the lines for a Sentinel that watches a server of this machine.
pub fn sentinel_lines(port: u16, quorum: usize) -> String {
    let mut lines = format!("sentinel monitor {MASTER_NAME} 127.0.0.1 {port} {quorum}\n");
    let down_after = patient(DOWN_AFTER).as_millis();
    let _ = writeln!(lines, "sentinel down-after-milliseconds {MASTER_NAME} {down_after}");
    let _ = writeln!(lines, "sentinel failover-timeout {MASTER_NAME} 3000");
    lines
}

fn master_of(sentinel: &RedisServer) -> String {
    sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_makes_the_replica_the_master() {
        let redis = RedisSentinels::start();
        assert_eq!(redis.master(), 0);
        redis.servers[0].command(&["SET", "a", "1"]);
        wait_for_sentinels("the replica", || {
            (redis.servers[1].command(&["GET", "a"]) == "1").then_some(())
        });
        redis.fail_over();
        assert_eq!(redis.master(), 1);
        assert_eq!(redis.servers[1].command(&["SET", "a", "2"]), "OK");
    }
}
