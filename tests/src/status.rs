//! The status that a running Kirin reports on its admin listener.

use serde_json::Value;

use crate::{Client, Kirin, wait_for};

/// The part of a configuration that [`Kirin::status`] needs.
pub const ADMIN: &str = "[admin]\naddress = \"127.0.0.1:0\"\n";

impl Kirin {
    /// Sends `GET /status`. The configuration must have [`ADMIN`].
    ///
    /// # Panics
    /// Panics if it has not, or if the answer is not JSON.
    pub fn status(&self) -> Value {
        let address = wait_for("the admin listener", || {
            let log = self.log();
            let (_, rest) = log.split_once("admin on http://")?;
            rest.split_once('/')?.0.parse().ok()
        });
        let mut client = Client::connect(address);
        client.send(format!("GET /status HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        let reply = client.read_reply();
        serde_json::from_slice(&reply.body)
            .unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
    }

    /// Returns the sum of a count over the servers of an upstream.
    ///
    /// # Panics
    /// Panics if there is no such count.
    pub fn count_of_servers(&self, upstream: &str, count: &str) -> u64 {
        let status = self.status();
        let servers = status["upstreams"][upstream]["servers"].as_array().expect("servers");
        servers.iter().map(|server| server[count].as_u64().expect("a count")).sum()
    }
}
