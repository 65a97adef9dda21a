//! What a running Kirin shows of the origin of its store: `kirin status`, the status page, metrics.

use std::net::SocketAddr;

use kirin_tests::{ADMIN, Client, Kirin, Memcached, RedisServer, Site, run_kirin, wait_for};
use serde_json::Value;

use crate::reload::printed;

const PASSWORD: &str = "s3cret@/:";

/// A Kirin whose store has an origin.
struct NearCache {
    site: Site,
    kirin: Kirin,
}

impl NearCache {
    /// Starts one whose password for the origin is in a file.
    fn before(redis: &RedisServer) -> Self {
        let site = Site::new().with("password", format!("{PASSWORD}\n"));
        let config = format!(
            r#"
[[listener]]
address = "127.0.0.1:0"
{ADMIN}
[store]
memcached = ["unix:store.sock"]
origin = "redis://default@{}"
origin_password_file = "password"
origin_timeout = "10s"
stale_limit = "2s"
[[route]]
path = "/"
try = ["files:."]
"#,
            redis.address()
        );
        let kirin = Kirin::start(&site, &config);
        Self { site, kirin }
    }

    /// Returns the origin of the status when it has this state.
    fn wait_for_state(&self, state: &str) -> Value {
        wait_for(&format!("the origin to be {state}"), || {
            let origin = self.kirin.status()["origin"].clone();
            (origin["state"] == state).then_some(origin)
        })
    }

    /// Returns the address of the admin listener.
    fn admin(&self) -> SocketAddr {
        let log = self.kirin.log();
        let (_, rest) = log.split_once("admin on http://").expect("the admin listener");
        let address = rest.split('/').next().and_then(|address| address.parse().ok());
        address.expect("an address")
    }

    /// Returns the text at `target` of the admin listener, as a browser gets it.
    fn read(&self, target: &str) -> String {
        let mut client = Client::connect(self.admin());
        client
            .send(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"));
        let reply = client.read_reply();
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.text()
    }

    /// Returns all that the program shows of itself.
    fn everything(&self) -> [String; 6] {
        let admin = self.admin().to_string();
        let command = |words: &[&str]| {
            printed(&run_kirin(&self.site, &[words, &["--admin", &admin]].concat()))
        };
        [
            command(&["status"]),
            command(&["status", "--json"]),
            command(&["top", "--once"]),
            self.read("/"),
            self.read("/metrics"),
            self.kirin.log(),
        ]
    }
}

#[test]
fn status_and_metrics_say_whether_the_origin_is_there_and_why_it_is_not() {
    let mut redis = RedisServer::start_with(&["--requirepass", PASSWORD]);
    let near = NearCache::before(&redis);
    let origin = near.wait_for_state("connected");
    let address = format!("redis://default@{}", redis.address());
    assert_eq!(
        (&origin["address"], &origin["server"]),
        (&address.as_str().into(), &"redis".into())
    );
    assert_eq!((&origin["connections"], &origin["reason"]), (&1.into(), &Value::Null), "{origin}");
    let [status, json, _, page, metrics, log] = near.everything();
    let version = origin["version"].as_str().expect("a version");
    let line = format!("\norigin        {address}, connected to redis {version}\n");
    assert!(status.contains(&line) && !status.contains("! "), "{status}");
    assert!(json.contains("\"state\": \"connected\""), "{json}");
    assert!(page.contains("<td>origin</td><td class=\"n\">connected</td>"), "{page}");
    for sample in ["kirin_origin_connected 1\n", "kirin_origin_connections_total 1\n"] {
        assert!(metrics.contains(sample), "{metrics}");
    }
    assert!(log.contains("origin connected"), "{log}");
    wait_for("the machine to be announced", || {
        near.read("/metrics").contains("\nkirin_origin_machines 1\n").then_some(())
    });
    redis.kill();
    // The first reason is that the connection has ended, the next one why there is no other.
    let reason = wait_for("the reason", || {
        let reason = near.wait_for_state("away")["reason"].as_str().map(str::to_owned);
        reason.filter(|reason| reason.contains("refused"))
    });
    assert!(reason.starts_with(&format!("cannot connect to {address}: ")), "{reason}");
    let [status, _, _, page, metrics, _] = near.everything();
    assert!(status.contains(&format!("\n! the origin {address} is away: {reason}\n")), "{status}");
    assert!(page.contains("<td>origin</td><td class=\"n\">away</td>"), "{page}");
    assert!(page.contains(&format!("<td>{reason}</td>")), "{page}");
    assert!(metrics.contains("kirin_origin_connected 0\n"), "{metrics}");
    redis.restart();
    assert_eq!(near.wait_for_state("connected")["connections"], 2);
    for text in near.everything() {
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn a_kirin_without_an_origin_shows_none() {
    let site = Site::new().with("index.html", "index");
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n{ADMIN}[[route]]\npath = \"/\"\n\
         try = [\"files:.\"]\n"
    );
    let near = NearCache { kirin: Kirin::start(&site, &config), site };
    assert_eq!(near.kirin.status()["origin"], Value::Null);
    let [status, _, top, page, metrics, _] = near.everything();
    for text in [status, top, page, metrics] {
        assert!(!text.contains("origin"), "{text}");
    }
}

#[test]
fn commands_that_reach_the_origin_are_counted() {
    let redis = RedisServer::start_with(&["--requirepass", PASSWORD]);
    let near = NearCache::before(&redis);
    near.wait_for_state("connected");
    let mut memcached = Memcached::connect(&near.site.path("store.sock"));
    memcached.set("a", b"1");
    assert_eq!((memcached.get("a"), memcached.get("b")), (Some(b"1".to_vec()), None));
    let origin = near.kirin.status()["origin"].clone();
    let metrics = near.read("/metrics");
    for name in ["reads", "read_hits", "writes", "purges", "timeouts", "failures"] {
        let sample = format!("\nkirin_origin_{name}_total {}\n", origin[name]);
        assert!(metrics.contains(&sample), "{sample} in {metrics}");
    }
    assert_eq!((&origin["writes"], &origin["timeouts"]), (&1.into(), &0.into()), "{origin}");
    assert!(origin["reads"].as_u64() > Some(0), "{origin}");
}
