//! The admin listener, and the commands that use it, through the built program.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use kirin_tests::{
    Backend, Client, Kirin, LeasedPort, Memcached, Site, kirin_command, run_kirin, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const APP: &str = r#"sub { [200, ['Content-Type' => 'text/plain'], ["application $$"]] };"#;

fn config(more: &str) -> String {
    format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n{more}\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n"
    )
}

const UNIX: &str = "[store]\nmemcached = [\"unix:m.sock\"]\n[admin]\naddress = \"unix:admin.sock\"";
const TCP: &str = "[store]\nmemcached = [\"unix:m.sock\"]\n[admin]\naddress = \"127.0.0.1:0\"";

fn serve(more: &str) -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &config(more));
    (site, kirin)
}

fn fill(site: &Site) -> Memcached {
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    for (key, tag) in [("/a", "x"), ("/b", "y"), ("/c/1", "z"), ("/d", "z")] {
        memcached.send(format!("ms {key} 13 Ptags={tag}\r\ntext/plain\r\np\r\n"));
        assert_eq!(memcached.line(), "HD");
    }
    memcached
}

fn left(memcached: &mut Memcached) -> Vec<&'static str> {
    ["/a", "/b", "/c/1", "/d"].into_iter().filter(|key| memcached.get(key).is_some()).collect()
}

/// Returns the address of the admin listener on TCP.
pub fn admin_address(kirin: &Kirin) -> SocketAddr {
    wait_for("the admin listener", || {
        let log = kirin.log();
        let (_, rest) = log.split_once("admin on http://")?;
        rest.split_once('/')?.0.parse().ok()
    })
}

fn ask(kirin: &Kirin, method: &str, path: &str, fields: &str, body: &str) -> (u16, String) {
    let mut client = Client::connect(admin_address(kirin));
    let length = body.len();
    client.send(format!(
        "{method} {path} HTTP/1.1\r\n{fields}\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let reply = client.read_reply();
    (reply.status, reply.text())
}

const HOST: &str = "Host: 127.0.0.1:1";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[test]
fn the_status_shows_the_state_of_the_program() {
    let (_site, kirin) = serve(TCP);
    kirin.get("/");
    kirin.get("/");
    // A worker is in the status when the front has read its greeting.
    let (status, body, json) = wait_for("both workers in the status", || {
        let (status, body) = ask(&kirin, "GET", "/status", HOST, "");
        let json: Value = serde_json::from_str(&body).expect(&body);
        let workers = json["apps"][0]["workers"].as_array().map(Vec::len);
        (workers == Some(2)).then_some((status, body, json))
    });
    assert_eq!((status, &json["pid"]), (200, &Value::from(kirin.pid())), "{body}");
    assert!(json["version"].is_string() && json["uptime_seconds"].is_u64(), "{body}");
    let app = &json["apps"][0];
    assert_eq!(
        (&app["name"], &app["state"]),
        (&Value::from("web"), &Value::from("ready")),
        "{body}"
    );
    assert_eq!(app["counters"]["requests"], 2, "{body}");
    assert_eq!(json["store"]["items"], 0, "{body}");
    assert!(json["store"]["limit_bytes"].as_u64().is_some_and(|limit| limit > 0), "{body}");
    for (method, path, expected) in
        [("GET", "/", 200), ("GET", "/x", 404), ("GET", "/purge", 405), ("DELETE", "/status", 405)]
    {
        assert_eq!(ask(&kirin, method, path, HOST, "").0, expected, "{method} {path}");
    }
}

#[test]
fn pages_are_purged_by_json_and_by_form() {
    let (site, kirin) = serve(TCP);
    let mut memcached = fill(&site);
    let json = format!("{HOST}\r\nContent-Type: application/json");
    let body = r#"{"keys": ["/a", "/never"], "prefixes": ["/c/"], "tags": ["y"]}"#;
    let (status, answer) = ask(&kirin, "POST", "/purge", &json, body);
    let answer: Value = serde_json::from_str(&answer).expect(&answer);
    assert_eq!((status, answer), (200, serde_json::json!({"keys": 1, "prefixes": 1, "tags": 1})));
    assert_eq!(left(&mut memcached), ["/d"]);
    let form =
        format!("{HOST}\r\nContent-Type: application/x-www-form-urlencoded\r\nKirin-Admin: 1");
    assert_eq!(ask(&kirin, "POST", "/purge", &form, "tag=q&tag=z").0, 200);
    assert!(left(&mut memcached).is_empty());
    for (fields, body) in [
        (&json, "{}"),
        (&json, "nonsense"),
        (&json, r#"{"tag": "x"}"#),
        (&form, "tags=x"),
        (&form, ""),
    ] {
        let (status, message) = ask(&kirin, "POST", "/purge", fields, body);
        assert!(status == 400 && message.len() > 10, "{body}: {status} {message}");
    }
}

#[test]
fn requests_that_a_web_page_could_send_are_refused() {
    let (site, kirin) = serve(TCP);
    let mut memcached = fill(&site);
    let json = "Content-Type: application/json";
    let form = "Content-Type: application/x-www-form-urlencoded";
    for (fields, expected) in [
        (format!("{HOST}\r\n{json}\r\nOrigin: http://evil.example"), 403),
        (format!("{HOST}\r\n{json}\r\nOrigin: http://127.0.0.1:1"), 403),
        (format!("{HOST}\r\n{json}\r\nSec-Fetch-Site: cross-site"), 403),
        (format!("Host: evil.example\r\n{json}"), 403),
        (format!("Host: 127.0.0.1.evil.example:80\r\n{json}"), 403),
        (format!("{HOST}\r\n{form}"), 403),
        (format!("{HOST}\r\nContent-Type: text/plain"), 415),
        (HOST.to_owned(), 415),
    ] {
        let body = r#"{"prefixes": ["/"]}"#;
        assert_eq!(ask(&kirin, "POST", "/purge", &fields, body).0, expected, "{fields}");
    }
    assert_eq!(ask(&kirin, "GET", "/status", "Host: evil.example", "").0, 403);
    assert_eq!(left(&mut memcached).len(), 4);
}

#[test]
fn only_its_owner_can_open_a_unix_socket() {
    let (site, _kirin) = serve(UNIX);
    let mode = std::fs::metadata(site.path("admin.sock")).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let output = run_kirin(&site, &["status", "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["apps"][0]["name"], "web");
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    for (address, is_good) in [
        ("0.0.0.0:0", false),
        ("*:0", false),
        ("10.0.0.1:80", false),
        ("[::1]:0", true),
        ("0", true),
    ] {
        let more = format!("[admin]\naddress = \"{address}\"");
        let site = Site::new().with("app.psgi", APP).with("kirin.toml", config(&more));
        let output = run_kirin(&site, &["check"]);
        assert_eq!(output.status.success(), is_good, "{address}: {}", said(&output));
        assert!(
            is_good || said(&output).contains("unix:PATH and a port on 127.0.0.1"),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn the_command_purges_by_admin_listener_or_by_memcached_port() {
    let (site, kirin) = serve(TCP);
    let address = admin_address(&kirin).to_string();
    let mut memcached = fill(&site);
    let output = run_kirin(
        &site,
        &["purge", "--key", "/a", "--key", "/never", "--tag", "z", "--admin", &address],
    );
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "purged 1 of 2 keys, 1 of 1 tags\n");
    assert_eq!(left(&mut memcached), ["/b"]);
    fill(&site);
    // The configuration does not have the chosen free port, so the command uses the memcached port.
    let output = run_kirin(&site, &["purge", "-p", "/c/", "-t", "y", "-t", "never", "-k", "/d"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "purged 1 of 1 keys, 1 of 1 prefixes, 1 of 2 tags\n");
    assert_eq!(left(&mut memcached), ["/a"]);
}

#[test]
fn a_soft_purge_marks_items_as_stale() {
    let (site, kirin) = serve(TCP);
    let address = admin_address(&kirin).to_string();
    let mut memcached = fill(&site);
    let mut stale = || {
        let is_stale = |key: &&str| memcached.send(format!("mg {key}\r\n")).line().contains('X');
        ["/a", "/b", "/c/1", "/d"].into_iter().filter(is_stale).collect::<Vec<_>>()
    };
    let output =
        run_kirin(&site, &["purge", "--soft", "-k", "/a", "-k", "/never", "--admin", &address]);
    assert_eq!(said(&output), "purged softly 1 of 2 keys\n");
    assert_eq!(stale(), ["/a"]);
    // This purge uses the memcached port.
    let output = run_kirin(&site, &["purge", "--soft", "-k", "/b", "-p", "/c/"]);
    assert_eq!(said(&output), "purged softly 1 of 1 keys, 1 of 1 prefixes\n");
    assert_eq!(stale(), ["/a", "/b", "/c/1"]);
    let form =
        format!("{HOST}\r\nContent-Type: application/x-www-form-urlencoded\r\nKirin-Admin: 1");
    assert_eq!(ask(&kirin, "POST", "/purge", &form, "tag=z&soft=true").0, 200);
    assert_eq!(stale(), ["/a", "/b", "/c/1", "/d"]);
}

#[test]
fn the_command_prints_why_it_failed() {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("none.toml", config(""))
        .with("kirin.toml", config(UNIX));
    for (arguments, code, message) in [
        (&["purge"][..], 2, "--key"),
        (&["purge", "--tag", "a,b"], 1, "no space, comma"),
        (&["purge", "--tag", "a"], 1, "admin.sock: No such file or directory"),
        (
            &["purge", "--tag", "a", "--config", "none.toml"],
            1,
            "no Kirin is running with this configuration; `kirin serve --config",
        ),
        (&["purge", "--tag", "a", "--config", "gone.toml"], 1, "cannot read the configuration"),
        (&["purge", "--tag", "a", "--admin", "nonsense"], 1, "is not an address"),
        (&["status", "--config", "none.toml"], 1, "no Kirin is running with this configuration"),
        (&["status", "--config", "none.toml", "--target", "app.psgi"], 2, "cannot be used with"),
        (&["status"], 1, "; start it, or name another one with --config, --target or --admin"),
    ] {
        let output = run_kirin(&site, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(message), "{arguments:?}: {}", said(&output));
    }
}

#[test]
fn the_admin_listener_is_passed_to_the_next_program() {
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", config(UNIX));
    let mut command = kirin_command(&site);
    command.args(["serve", "--pid-file", "pid"]);
    let mut first = Kirin::start_command(&mut command);
    let status = || {
        let output = run_kirin(&site, &["status", "--json"]);
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["pid"].as_u64()
    };
    assert_eq!(status(), Some(u64::from(first.pid())));
    first.signal(Signal::USR2);
    assert!(first.wait().success(), "{}", first.log());
    let second = std::fs::read_to_string(site.path("pid"))
        .expect("pid")
        .trim()
        .parse::<i32>()
        .expect("a pid");
    assert_ne!(second as u32, first.pid());
    let answered = status();
    let mode = std::fs::metadata(site.path("admin.sock")).expect("the socket").permissions().mode();
    kill_process(Pid::from_raw(second).expect("a pid"), Signal::TERM).expect("kill");
    wait_for("its end", || (!site.path("pid").exists()).then_some(()));
    assert_eq!((answered, mode & 0o777), (Some(second as u64), 0o600));
}

#[test]
fn the_status_counts_what_caches_do_and_shows_the_servers_of_upstreams() {
    let backend = Backend::answering(|request| {
        let fields = match request.head.split(' ').nth(1) {
            Some("/kept") => "Cache-Control: max-age=60\r\n",
            Some("/stale") => {
                "Cache-Control: max-age=60, stale-while-revalidate=60\r\nAge: 61\r\nETag: \"a\"\r\n"
            }
            _ => "",
        };
        format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{fields}\r\nok")
    });
    // No process listens on this port.
    let lease = LeasedPort::lease();
    let nobody = lease.address();
    let more = format!(
        "{TCP}\n[[upstream]]\nname = \"api\"\nservers = [\"{}\", \"{nobody}\"]\nmax_failures = 1\n\
         [[route]]\npath = \"/api\"\ntry = [\"proxy:api\"]\ncache = {{ bypass = [\"query:past\"] }}\nrewrite = \"/\"\n",
        backend.address()
    );
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &config(&more));
    let mut client = kirin.connect();
    for (path, times) in [("/kept", 4), ("/stale", 2), ("/private", 3), ("/kept?past", 1)] {
        for _ in 0..times {
            assert_eq!(client.get(&format!("/api{path}")).text(), "ok", "{path}");
        }
    }
    let status = || {
        let (_, body) = ask(&kirin, "GET", "/status", HOST, "");
        serde_json::from_str::<Value>(&body).expect(&body)
    };
    // Kirin renews the stale response in the background.
    let json = wait_for("both answers to be stored again", || {
        let json = status();
        (json["cache"]["stored"].as_u64() >= Some(3)).then_some(json)
    });
    let cache = &json["cache"];
    let count = |name: &str| cache[name].as_u64().unwrap_or_else(|| panic!("no {name}: {json:#}"));
    assert_eq!((count("hits"), count("stale_hits")), (3, 1), "{json:#}");
    assert_eq!(
        (count("misses"), count("validations"), count("not_modified")),
        (3, 1, 0),
        "{json:#}"
    );
    assert_eq!((count("passed"), count("bypassed"), count("collapsed")), (2, 1, 0), "{json:#}");
    let servers = json["upstreams"]["api"]["servers"].as_array().expect("servers");
    let [well, other] = servers.as_slice() else { panic!("{json:#}") };
    assert_eq!(well["server"], backend.address().to_string());
    assert_eq!(
        (&well["availability"], &well["in_flight"]),
        (&"available".into(), &0.into()),
        "{json:#}"
    );
    // Each request counts once, even if a connection had to be made for it.
    assert_eq!((&well["requests"], &well["failures"]), (&7.into(), &0.into()), "{json:#}");
    assert_eq!(
        (&well["max_in_flight"], &well["failures_in_a_row"]),
        (&Value::Null, &0.into()),
        "{json:#}"
    );
    assert!(well["latency_ms"].as_f64() > Some(0.0), "{json:#}");
    assert_eq!(
        (&other["availability"], &other["ejections"]),
        (&"ejected".into(), &1.into()),
        "{json:#}"
    );
    assert!(other["failures"].as_u64() >= Some(1), "{json:#}");
}

/// Returns a configuration whose other listeners are all unix sockets.
const UNIX_SOCKETS: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"unix:web.sock\"\n\
    [admin]\naddress = \"unix:admin.sock\"\n[store]\nmemcached = [\"unix:m.sock\"]\n\
    [[route]]\npath = \"/\"\ntry = [\"store\"]\n";

fn sockets(site: &Site) -> usize {
    ["web.sock", "admin.sock", "m.sock"].iter().filter(|name| site.path(name).exists()).count()
}

#[test]
fn unix_sockets_are_removed_at_the_end_and_stale_ones_are_replaced() {
    let site = Site::new();
    let mut kirin = Kirin::start(&site, UNIX_SOCKETS);
    assert_eq!(sockets(&site), 3);
    kirin.signal(Signal::TERM);
    kirin.wait();
    assert_eq!(sockets(&site), 0, "after TERM");
    drop(kirin);

    let mut kirin = Kirin::start(&site, UNIX_SOCKETS);
    kirin.signal(Signal::KILL);
    kirin.wait();
    assert_eq!(sockets(&site), 3, "after KILL");
    drop(kirin);

    let first = Kirin::start(&site, UNIX_SOCKETS);
    let at = ["status", "--admin", "unix:admin.sock"];
    assert!(run_kirin(&site, &at).status.success(), "{}", first.log());
    // A second Kirin is refused, and removes nothing. It has bound its own port.
    let mut second = Kirin::spawn(&site, &["serve"]);
    assert_eq!(second.wait().code(), Some(1));
    second.wait_for_log("is in use by another process");
    assert_eq!(sockets(&site), 3, "of the first");
    assert!(run_kirin(&site, &at).status.success(), "{}", first.log());
}

#[test]
fn a_start_that_fails_leaves_no_socket_behind_and_an_end_takes_no_others() {
    let site = Site::new().with("web.sock", "not a socket");
    let config = UNIX_SOCKETS.replace("web.sock", "first.sock").replace("admin.sock", "web.sock");
    std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    let mut failed = Kirin::spawn(&site, &["serve"]);
    assert_eq!(failed.wait().code(), Some(1));
    failed.wait_for_log("it is left alone");
    assert!(!site.path("first.sock").exists(), "{}", failed.log());
    std::fs::remove_file(site.path("web.sock")).expect("the file");

    let mut kirin = Kirin::start(&site, UNIX_SOCKETS);
    // The socket now belongs to another process.
    std::fs::remove_file(site.path("admin.sock")).expect("the socket");
    let _other =
        std::os::unix::net::UnixListener::bind(site.path("admin.sock")).expect("another socket");
    kirin.signal(Signal::TERM);
    kirin.wait();
    assert!(site.path("admin.sock").exists() && !site.path("web.sock").exists());
}
