//! The formats `json` and `ltsv` through the built program.

use kirin_tests::{Authority, Http2Client, Kirin, Site, TlsClient, TlsSetup, wait_for};
use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};
use serde_json::Value;

const CONFIG: &str = r#"
threads = 1
[[listener]]
address    = "127.0.0.1:0"
access_log = { path = "json.log", format = "json" }
[[app]]
name    = "web"
load    = "app.psgi"
workers = 1
[[route]]
path = "/"
try  = ["files:public"]
[[route]]
path       = "/ltsv"
try        = ["files:public"]
access_log = { path = "ltsv.log", format = "ltsv" }
[[route]]
path = "/app"
try  = ["app:web"]
[[route]]
path = "/gone"
try  = ["proxy:far"]
[[upstream]]
name    = "far"
servers = ["127.0.0.1:1"]
"#;

const APP: &str = "sub { my $env = shift; [200, ['Content-Type' => 'text/plain'], ['hello']] }";

fn json_line(site: &Site, target: &str) -> Value {
    let line = wait_for(&format!("the line of {target}"), || {
        let log = std::fs::read_to_string(site.path("json.log")).ok()?;
        log.lines().find(|line| line.contains(&format!("\"uri\":\"{target}\""))).map(str::to_owned)
    });
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn json_has_the_keys_of_each_place() {
    let site = Site::new().with("app.psgi", APP).with("public/small", "small");
    let kirin = Kirin::start(&site, CONFIG);
    kirin.connect().request("GET", "/small?x=1", "User-Agent: \"q\"\r\nReferer: caf\u{e9}\r\n");
    let line = json_line(&site, "/small?x=1");
    for (key, expected) in [
        ("host", "127.0.0.1"),
        ("method", "GET"),
        ("protocol", "HTTP/1.1"),
        ("ua", "\"q\""),
        ("referer", "caf\u{e9}"),
        ("place", "files"),
        ("end", "whole"),
    ] {
        assert_eq!(line[key], expected, "{key}: {line}");
    }
    assert_eq!(
        (&line["status"], &line["size"], &line["bytes_in"]),
        (&200.into(), &5.into(), &0.into())
    );
    for key in ["user", "worker", "queue", "upstream", "upstream_time", "cache", "tls"] {
        assert!(line.get(key).is_none(), "{key}: {line}");
    }
    let time = line["time"].as_str().expect("a time");
    assert!(time.len() == 29 && time.ends_with("+00:00") && &time[10..11] == "T", "{time}");
    assert_eq!(line["request_id"].as_str().map(str::len), Some(32), "{line}");

    assert_eq!(kirin.connect().post("/app/form", "text/plain", b"four").status, 200);
    let line = json_line(&site, "/app/form");
    assert_eq!((&line["place"], &line["bytes_in"]), (&"app:web".into(), &4.into()), "{line}");
    let (worker, all) = (line["worker"].as_f64(), line["reqtime"].as_f64());
    assert!(worker > Some(0.0) && worker <= all, "{line}");

    assert_eq!(kirin.get("/gone").status, 502);
    let line = json_line(&site, "/gone");
    assert_eq!(line["status"], 502, "{line}");

    let mut client = Http2Client::connect(kirin.address());
    assert_eq!(client.get("/small?h2").status, 200);
    let line = json_line(&site, "/small?h2");
    assert_eq!((&line["protocol"], &line["size"]), (&"HTTP/2.0".into(), &5.into()), "{line}");
    assert_eq!(client.post("/app/h2", "text/plain", b"three", true).status, 200);
    assert_eq!(json_line(&site, "/app/h2")["bytes_in"], 5);
}

#[test]
fn json_has_the_version_of_tls() {
    let authority = Authority::new("Kirin test authority");
    let site = Site::new().with("app.psgi", APP).with("public/a", "a");
    authority.issue(&["a.test"]).write(&site, "a");
    let tls = "[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n[[app]]";
    let kirin = Kirin::start(&site, &CONFIG.replacen("[[app]]", tls, 1));
    for (version, name) in [(TLSv1_2, "TLSv1.2"), (TLSv1_3, "TLSv1.3")] {
        for target in ["/a", "/app"] {
            let target = format!("{target}?{name}");
            let setup = TlsSetup::new(&authority, None, version);
            let mut client = TlsClient::connect(kirin.address(), "a.test", &setup).expect("TLS");
            client.get_and_close(&target);
            assert_eq!(json_line(&site, &target)["tls"], name, "{target}");
        }
    }
}

#[test]
fn ltsv_has_all_keys_and_a_dash_for_what_there_is_not() {
    let site = Site::new().with("app.psgi", APP).with("public/ltsv/a", "small");
    let kirin = Kirin::start(&site, CONFIG);
    kirin.connect().request("GET", "/ltsv/a", "User-Agent: a\tstatus:500\r\n");
    let line = wait_for("a line", || {
        let log = std::fs::read_to_string(site.path("ltsv.log")).ok()?;
        log.lines().next().map(str::to_owned)
    });
    let keys: Vec<_> = line.split('\t').map(|field| field.split(':').next()).collect();
    let expected = "time host user method uri protocol status size reqtime vhost referer ua place \
                    cache queue worker upstream upstream_time tls request_id bytes_in end";
    assert_eq!(keys, expected.split_whitespace().map(Some).collect::<Vec<_>>(), "{line}");
    for field in ["uri:/ltsv/a", "status:200", "user:-", "ua:a\\x09status:500", "place:files"] {
        assert!(line.split('\t').any(|other| other == field), "{field}: {line}");
    }
}
