//! Networks that lose, reorder, copy and spoil datagrams, and that give clients other addresses:
//! lossy_proxy.py is between the client and the server.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout};

use serde_json::Value;

use super::*;

/// A running proxy.
struct LossyProxy {
    child: Child,
    output: BufReader<ChildStdout>,
    url: String,
}

impl LossyProxy {
    /// Starts a proxy in front of a program, with these options.
    fn start(served: &Served, options: &[&str]) -> Self {
        let mut command = python("lossy_proxy.py");
        command.arg(format!("127.0.0.1:{}", served.port.number())).args(options);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("the port");
        let port: u16 = line.trim().parse().unwrap_or_else(|error| panic!("{line:?}: {error}"));
        Self { child, output, url: format!("https://127.0.0.1:{port}") }
    }

    /// Returns a client with a connection through the proxy.
    fn connect(&self) -> Http3Client {
        let mut client = Http3Client::start();
        client.ask(&json!({ "do": "connect", "url": self.url }));
        client
    }

    /// Ends the proxy. Returns what it has done.
    fn report(mut self) -> Value {
        drop(self.child.stdin.take());
        let mut report = String::new();
        self.output.read_to_string(&mut report).expect("a report");
        serde_json::from_str(&report).unwrap_or_else(|error| panic!("{report:?}: {error}"))
    }
}

impl Drop for LossyProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Gets the large file and uploads as many bytes, and compares each byte by hashes.
fn exchange(served: &Served, client: &mut Http3Client, what: &str) {
    let file = served.site.path("public/large.bin");
    let mut upload = json!({ "do": "request", "method": "POST", "path": "/app/body" });
    upload["file"] = json!(file);
    let sent = client.ask(&upload);
    let streams = [
        sent["stream"].as_u64().expect("a stream"),
        client.begin("/large.bin", json!({})),
        client.begin("/page.html", json!({})),
    ];
    let replies = client.finish(&streams);
    let expected = format!("3000000 {}", sent["md5"].as_str().expect("a hash"));
    assert_eq!(replies[0].text(), expected, "{what}: {:?}", replies[0]);
    assert_eq!((replies[1].length(), &sent["sha256"]), (3_000_000, &json!(replies[1].sha256())));
    assert_eq!(replies[2].text(), "<p>page</p>".repeat(400), "{what}");
}

#[test]
fn one_lost_datagram_of_a_hundred_harms_nothing() {
    let served = serve(CONFIG);
    let proxy = LossyProxy::start(&served, &["--loss", "1", "--reorder", "2", "--seed", "1"]);
    exchange(&served, &mut proxy.connect(), "1 %");
    let report = proxy.report();
    assert!(report["to_client"]["dropped"].as_u64() > Some(0), "{report}");
    assert!(report["to_client"]["reordered"].as_u64() > Some(0), "{report}");
    served.assert_is_well();
}

#[test]
fn five_lost_datagrams_of_a_hundred_harm_nothing() {
    let served = serve(CONFIG);
    let harm =
        ["--loss", "5", "--reorder", "5", "--duplicate", "5", "--corrupt", "1", "--seed", "2"];
    let proxy = LossyProxy::start(&served, &harm);
    exchange(&served, &mut proxy.connect(), "5 %");
    let report = proxy.report();
    for what in ["dropped", "reordered", "duplicated", "corrupted"] {
        assert!(report["to_client"][what].as_u64() > Some(0), "{what}: {report}");
    }
    served.assert_is_well();
}

#[test]
fn every_fifth_datagram_may_be_lost() {
    let served = serve(CONFIG);
    let proxy = LossyProxy::start(&served, &["--loss", "20", "--reorder", "10", "--seed", "3"]);
    let mut client = proxy.connect();
    let streams: Vec<u64> = (0..5).map(|_| client.begin("/page.html", json!({}))).collect();
    let sent = client.ask(&json!({
        "do": "request", "method": "POST", "path": "/app/body", "size": 50_000
    }));
    for reply in client.finish(&streams) {
        assert_eq!(reply.text(), "<p>page</p>".repeat(400), "{reply:?}");
    }
    let reply = client.finish(&[sent["stream"].as_u64().expect("a stream")]).remove(0);
    let expected = format!("50000 {}", sent["md5"].as_str().expect("a hash"));
    assert_eq!(reply.text(), expected, "{reply:?}");
    served.assert_is_well();
}

#[test]
fn a_client_whose_address_changes_keeps_its_connection() {
    for threads in [1, 2] {
        let config = CONFIG.replace("threads = 2", &format!("threads = {threads}"));
        let served = serve(&config);
        // A NAT that has forgotten the client gives it another port, and the client does not know.
        let proxy = LossyProxy::start(&served, &["--rebind", "300"]);
        let mut client = proxy.connect();
        exchange(&served, &mut client, &format!("{threads} threads"));
        drop(client);
        let report = proxy.report();
        assert!(report["rebinds"].as_u64() >= Some(5), "{threads} threads: {report}");
        // A client that knows of it uses another connection ID.
        let mut client = served.connect();
        for new_id in [true, false, true, true] {
            let stream = client.begin("/large.bin", json!({}));
            client.ask(&json!({ "do": "look", "stream": stream, "bytes": 100_000 }));
            let ports = client.ask(&json!({ "do": "move", "new_id": new_id }));
            assert_ne!(ports["from"], ports["to"], "{ports}");
            let reply = client.finish(&[stream]).remove(0);
            assert!(reply.length() == 3_000_000 && reply.is_complete(), "{threads}: {new_id}");
        }
        served.assert_is_well();
    }
}
