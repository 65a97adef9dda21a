//! `kirin block`: an operator closes out an address for a time.

use kirin_tests::{Http2Client, Site, wait_for};

use crate::reload::{Served, printed};

const CONFIG: &str = r#"
threads = 2
[admin]
address = "unix:admin.sock"
[[listener]]
address = "127.0.0.1:0"
[[route]]
path = "/"
try = ["files:public"]
"#;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn serve(config: &str) -> Served {
    Served::start(Site::new().with("public/index.html", "index"), config)
}

/// Returns the metrics, by the admin socket.
fn metrics(served: &Served) -> String {
    let output = std::process::Command::new("curl")
        .args(["--silent", "--unix-socket"])
        .arg(served.site.path("admin.sock"))
        .arg("http://localhost/metrics")
        .output()
        .expect("curl");
    printed(&output)
}

#[test]
fn connections_are_closed_and_open_ones_get_403() {
    let served = serve(CONFIG);
    let mut kept = served.kirin.connect();
    let mut http2 = Http2Client::connect(served.kirin.address());
    assert_eq!((kept.send(GET).read_reply().status, http2.get("/").status), (200, 200));
    assert_eq!(
        printed(&served.command(&["block", "127.0.0.0/8", "--for", "10m"])),
        "127.0.0.0/8 is blocked for 10m\n"
    );
    assert_eq!((kept.send(GET).read_reply().status, http2.get("/").status), (403, 403));
    for _ in 0..3 {
        assert_eq!(served.kirin.connect().try_send(GET).read_to_end(), b"");
    }
    assert!(metrics(&served).contains("limit=\"blocked\"} 3\n"), "{}", metrics(&served));
    let status = printed(&served.command(&["status"]));
    assert!(status.contains("! blocked by an operator: 127.0.0.0/8 for "), "{status}");
    // A reload keeps it.
    served.reload(&format!("{CONFIG}index = [\"index.html\"]\n"));
    assert_eq!(kept.send(GET).read_reply().status, 403);
    let part = served.command(&["unblock", "127.0.0.1"]);
    let said = String::from_utf8_lossy(&part.stderr).into_owned();
    assert!(said.contains("127.0.0.1 is blocked as a part of 127.0.0.0/8"), "{said}");
    printed(&served.command(&["unblock", "127.0.0.0/8"]));
    assert_eq!((kept.send(GET).read_reply().status, http2.get("/").status), (200, 200));
    assert_eq!(served.text("/"), "index");
}

#[test]
fn a_block_ends_by_itself() {
    let served = serve(CONFIG);
    let mut kept = served.kirin.connect();
    assert_eq!(kept.send(GET).read_reply().status, 200);
    printed(&served.command(&["block", "127.0.0.1", "--for", "1s"]));
    wait_for("the end of the block", || (kept.send(GET).read_reply().status == 200).then_some(()));
    assert!(!printed(&served.command(&["status"])).contains("blocked"));
}

#[test]
fn a_client_behind_a_trusted_proxy_is_blocked_and_the_proxy_is_not() {
    let config = CONFIG.replace(
        "address = \"127.0.0.1:0\"",
        "address = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\nforwarded = \"x-forwarded-for\"",
    );
    let served = serve(&config);
    printed(&served.command(&["block", "192.0.2.7"]));
    printed(&served.command(&["block", "2001:db8::/32"]));
    let mut proxy = served.kirin.connect();
    for (client, status) in
        [("192.0.2.7", 403), ("192.0.2.8", 200), ("2001:db8:1::9", 403), ("::ffff:192.0.2.7", 403)]
    {
        let fields = format!("X-Forwarded-For: {client}\r\n");
        assert_eq!(proxy.request("GET", "/", &fields).status, status, "{client}");
    }
}

#[test]
fn a_client_of_a_proxy_header_is_blocked() {
    let config = CONFIG.replace(
        "address = \"127.0.0.1:0\"",
        "address = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\nproxy_protocol = true",
    );
    let served = serve(&config);
    printed(&served.command(&["block", "192.0.2.7"]));
    let from = |client: &str| format!("PROXY TCP4 {client} 192.0.2.1 1000 80\r\n{GET}");
    let mut other = served.kirin.connect();
    assert_eq!(other.send(from("192.0.2.8")).read_reply().status, 200);
    assert_eq!(served.kirin.connect().try_send(from("192.0.2.7")).read_to_end(), b"");
}

#[test]
fn wrong_blocks_say_what_is_allowed() {
    let served = serve(CONFIG);
    for (words, part) in [
        (&["block", "host.test"][..], "`host.test` is not an address or a network, such as"),
        (&["block", "10.0.0.1/8"], "the network is 10.0.0.0/8"),
        (&["block", "::ffff:10.0.0.1"], "as an IPv4 network"),
        (&["block", "10.0.0.1", "--for", "1"], "is not a time: write \"1s\""),
        (&["block", "10.0.0.1", "--for", "366d"], "allowed are 365d"),
        (&["unblock", "10.0.0.1"], "10.0.0.1 is not blocked"),
    ] {
        let output = served.command(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(part), "{words:?}: {said}");
    }
}
