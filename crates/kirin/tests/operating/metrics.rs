//! Metrics through the built program, read by Debian's Prometheus, promtool and the OpenMetrics
//! parser of Prometheus' Python client.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kirin_tests::{
    Authority, Backend, Client, Http2Client, Kirin, LeasedPort, Reply, Site, TlsClient, TlsSetup,
    wait_for,
};
use rustix::process::{Pid, Signal, kill_process};
use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};
use serde_json::Value;

const OPEN_METRICS: &str = "Accept: application/openmetrics-text;version=1.0.0\r\n";

const APP: &str = r"
sub {
    my $path = $_[0]{PATH_INFO};
    select undef, undef, undef, 0.3 if $path eq '/slow';
    kill KILL => $$ if $path eq '/crash';
    [$path eq '/error' ? 500 : 200, ['Content-Type' => 'text/plain'], ['hello']];
};
";

/// Returns a site with an application, files and an upstream at `backend`.
fn config(backend: SocketAddr) -> String {
    format!(
        r#"
metrics = "127.0.0.1:0"
threads = 2
[[listener]]
address = "127.0.0.1:0"
[[app]]
name = "web"
load = "app.psgi"
workers = 1
[[upstream]]
name = "web"
servers = ["{backend}"]
[[route]]
path = "/"
try = ["files:public", "app:web"]
[[route]]
path = "/api/"
try = ["proxy:web"]
[[route]]
path = "/limited/"
try = ["files:public"]
rate_limit = [{{ rate = "1/h", burst = 1 }}]
[[site]]
hosts = ["other.test"]
[[site.route]]
path = "/only/"
match = {{ methods = ["GET"] }}
try = ["files:public"]
"#
    )
}

struct Served {
    _site: Site,
    _backend: Backend,
    kirin: Kirin,
}

fn serve() -> Served {
    let backend = Backend::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nup".into());
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/page.txt", "page\n")
        .with("public/only/page.txt", "page\n")
        .with("public/limited/page.txt", "page\n")
        .with("public/large.bin", vec![b'x'; 8 << 20]);
    let kirin = Kirin::start(&site, &config(backend.address()));
    Served { _site: site, _backend: backend, kirin }
}

/// Returns the address of the metrics.
fn address(kirin: &Kirin) -> SocketAddr {
    wait_for("the address of metrics", || {
        let log = kirin.log();
        let (_, rest) = log.split_once("metrics on http://")?;
        rest.split_once('/')?.0.parse().ok()
    })
}

fn ask(kirin: &Kirin, method: &str, target: &str, fields: &str) -> Reply {
    let mut client = Client::connect(address(kirin));
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}\r\n"));
    if method == "HEAD" { client.read_head_reply() } else { client.read_reply() }
}

/// Returns the metrics in OpenMetrics.
fn read(kirin: &Kirin) -> String {
    let reply = ask(kirin, "GET", "/metrics", OPEN_METRICS);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

/// Returns each series with its value.
fn series(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect(line);
            (series.to_owned(), value.parse().expect(line))
        })
        .collect()
}

/// Waits until a series has the value.
fn wait_for_series(kirin: &Kirin, name: &str, value: f64) {
    let mut last = String::new();
    let start = std::time::Instant::now();
    loop {
        last.replace_range(.., &read(kirin));
        if series(&last).get(name) == Some(&value) {
            return;
        }
        assert!(start.elapsed() < kirin_tests::wait_limit(), "{name} is not {value} in\n{last}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Runs a program with `input`. Returns whether it succeeded, and what it said.
fn run(command: &mut Command, input: &str) -> (bool, String) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    child.stdin.take().expect("stdin").write_all(input.as_bytes()).expect("input");
    let output = child.wait_with_output().expect("output");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

/// A running Prometheus. It is killed when this is dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _lease: LeasedPort,
}

impl Prometheus {
    fn start(site: &Site, target: SocketAddr) -> Self {
        let lease = LeasedPort::lease();
        let address = lease.address();
        let rules = packaging("prometheus/kirin.rules.yml");
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [\"{}\"]\n\
             scrape_configs: [{{ job_name: kirin, static_configs: [{{ targets: [\"{target}\"] }}] }}]\n",
            rules.canonicalize().expect("the rules").display()
        );
        std::fs::write(site.path("prometheus.yml"), config).expect("a file");
        let log = std::fs::File::create(site.path("prometheus.log")).expect("a log");
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=tsdb")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(site.root())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus is installed");
        Self { child, address, _lease: lease }
    }

    /// Sends a question to its API. Returns `None` as long as it does not answer.
    fn ask(&self, target: &str) -> Option<Value> {
        let url = format!("http://{}/api/v1/{target}", self.address);
        let output = Command::new("curl").args(["-sS", "-g", &url]).output().expect("curl");
        let answer: Value = serde_json::from_slice(&output.stdout).ok()?;
        (answer["status"] == "success").then(|| answer["data"].clone())
    }

    /// Returns the value of an expression that has one series.
    fn value(&self, expression: &str) -> Option<f64> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let data = self.ask(&format!("query?query={encoded}"))?;
        let [result] = data["result"].as_array()?.as_slice() else { return None };
        result["value"][1].as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn prometheus_scrapes_kirin_and_knows_its_numbers() {
    let served = serve();
    let kirin = &served.kirin;
    for _ in 0..7 {
        assert_eq!(kirin.get("/page.txt").status, 200);
    }
    for (target, count) in [("/x", 3), ("/api/x", 2), ("/error", 1)] {
        (0..count).for_each(|_| drop(kirin.get(target)));
    }
    let site = Site::new();
    let prometheus = Prometheus::start(&site, address(kirin));
    for (expression, expected) in [
        ("up{job=\"kirin\"}", 1.0),
        ("kirin_requests_total{route=\"/\",place=\"files\",class=\"2xx\"}", 7.0),
        ("kirin_requests_total{route=\"/\",place=\"app:web\",class=\"2xx\"}", 3.0),
        ("kirin_requests_total{route=\"/\",place=\"app:web\",class=\"5xx\"}", 1.0),
        ("kirin_requests_total{route=\"/api\",place=\"proxy:web\"}", 2.0),
        ("sum(kirin_request_duration_seconds_count)", 13.0),
        ("sum(kirin_request_duration_seconds_bucket{le=\"60.0\"})", 13.0),
        ("kirin_response_body_bytes_total{place=\"files\"}", 35.0),
        ("kirin_app_request_seconds_count", 4.0),
        ("kirin_upstream_request_seconds_count", 2.0),
        ("sum(kirin_app_workers)", 1.0),
        ("kirin_upstream_server_state{state=\"available\"}", 1.0),
        ("kirin_build_info", 1.0),
        ("count(process_open_fds > 0)", 1.0),
    ] {
        wait_for(&format!("{expression} = {expected} in Prometheus"), || {
            prometheus.value(expression).filter(|value| *value == expected)
        });
    }
    let targets = prometheus.ask("targets").expect("targets");
    assert_eq!(targets["activeTargets"][0]["lastError"], "", "{targets}");
    let rules = prometheus.ask("rules").expect("rules");
    let rules = rules["groups"][0]["rules"].as_array().expect("rules").clone();
    assert!(rules.len() > 10, "{rules:?}");
    wait_for("all rules to be evaluated", || {
        let answer = prometheus.ask("rules")?;
        let rules = answer["groups"][0]["rules"].as_array()?.clone();
        rules.iter().all(|rule| rule["health"] == "ok").then_some(())
    });
    let log = std::fs::read_to_string(site.path("prometheus.log")).expect("the log");
    assert!(!log.contains("level=error") && !log.contains("duplicate"), "{log}");
}

#[test]
fn promtool_accepts_the_metrics_and_the_rules() {
    let served = serve();
    let kirin = &served.kirin;
    for target in ["/page.txt", "/x", "/api/x", "/missing/x", "/error"] {
        kirin.get(target);
    }
    let reply = ask(kirin, "GET", "/metrics", "");
    assert_eq!(reply.field("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let (accepted, said) = run(Command::new("promtool").args(["check", "metrics"]), &reply.text());
    assert!(accepted && said.trim().is_empty(), "{said}\n{}", reply.text());
    let rules = packaging("prometheus/kirin.rules.yml");
    let (accepted, said) = run(Command::new("promtool").args(["check", "rules"]).arg(rules), "");
    assert!(accepted && said.contains("SUCCESS"), "{said}");
}

#[test]
fn the_openmetrics_parser_accepts_the_metrics() {
    let served = serve();
    for target in ["/page.txt", "/x", "/api/x"] {
        served.kirin.get(target);
    }
    let reply = ask(&served.kirin, "GET", "/metrics", OPEN_METRICS);
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(reply.field("content-type"), Some(media_type));
    let parse = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
        print(sum(len(family.samples) for family in parse(sys.stdin.read())))";
    // The Python of Debian, which has the package.
    let (parsed, said) = run(Command::new("/usr/bin/python3").args(["-c", parse]), &reply.text());
    assert!(parsed, "{said}\n{}", reply.text());
    assert_eq!(said.trim().parse(), Ok(series(&reply.text()).len()), "{said}");
}

#[test]
fn requests_of_strangers_make_no_series() {
    let served = serve();
    let kirin = &served.kirin;
    let names = || series(&read(kirin)).into_keys().collect::<BTreeSet<_>>();
    let probe = |number: u32| {
        let mut client = kirin.connect();
        for target in [
            format!("/{number}"),
            format!("/only/{number}"),
            "/error".into(),
            format!("/api/{number}?{number}"),
        ] {
            for host in ["test".to_owned(), "other.test".into(), format!("h{number}.test")] {
                for method in ["GET".to_owned(), "DELETE".into(), format!("X{number}")] {
                    client.send(format!(
                        "{method} {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {number}\r\nX-Request-Id: {number}\r\n\r\n"
                    ));
                    client.read_reply();
                }
            }
        }
        let mut broken = kirin.connect();
        broken.send(format!("nonsense {number}\r\n\r\n"));
        assert_eq!(broken.read_reply().status, 400);
    };
    probe(0);
    let before = names();
    assert!(before.iter().any(|name| name.contains("route=\"none\"")), "{before:?}");
    assert!(
        before.iter().any(|name| name.contains("site=\"other.test\",route=\"/only method `GET`\"")),
        "{before:?}"
    );
    (1..40).for_each(probe);
    let after = names();
    let new: Vec<_> = after.difference(&before).collect();
    assert!(new.is_empty(), "{new:?}");
    assert!(!after.iter().any(|name| name.contains("h1.test") || name.contains("DELETE")));
}

#[test]
fn the_dashboard_and_the_rules_name_metrics_that_exist() {
    let served = serve();
    for target in ["/page.txt", "/x", "/api/x"] {
        served.kirin.get(target);
    }
    let text = read(&served.kirin);
    let tls = serve_tls(&Authority::new("Kirin test authority"));
    let text = text + &read(&tls.1);
    let site = Site::new().with("page.txt", "page");
    let origin = "metrics = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\n\
                  origin = \"redis+unix:///nothing\"\n[[route]]\npath = \"/\"\n\
                  try = [\"files:.\"]\n";
    let text = text + &read(&Kirin::start(&site, origin));
    let exposed: BTreeSet<_> = series(&text)
        .into_keys()
        .map(|series| series.split('{').next().unwrap_or_default().to_owned())
        .collect();
    for file in ["grafana/kirin.json", "prometheus/kirin.rules.yml"] {
        let content = std::fs::read_to_string(packaging(file)).expect(file);
        if file.ends_with("json") {
            let dashboard: Value = serde_json::from_str(&content).expect("JSON");
            assert!(dashboard["panels"].as_array().is_some_and(|panels| panels.len() > 20));
        }
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let named: BTreeSet<_> = content
            .split(|character| !is_part(character))
            .filter(|word| word.starts_with("kirin_") || word.starts_with("process_"))
            .collect();
        assert!(named.len() > 10, "{named:?}");
        for name in named {
            assert!(exposed.contains(name), "{file} has {name}; exposed are {exposed:#?}");
        }
    }
}

#[test]
fn the_address_of_metrics_answers_nothing_else() {
    let served = serve();
    let kirin = &served.kirin;
    for (method, target, fields, expected) in [
        ("GET", "/metrics", "", 200),
        ("HEAD", "/metrics", "", 200),
        ("POST", "/metrics", "Content-Length: 0\r\n", 405),
        ("GET", "/", "", 404),
        ("GET", "/status", "", 404),
        ("GET", "/metrics/x", "", 404),
        ("POST", "/purge", "Content-Type: application/json\r\nContent-Length: 0\r\n", 404),
        ("GET", "/metrics", "Origin: http://evil.test\r\n", 403),
        ("GET", "/metrics", "Sec-Fetch-Site: cross-site\r\n", 403),
    ] {
        let reply = ask(kirin, method, target, fields);
        assert_eq!(reply.status, expected, "{method} {target} {fields}");
    }
    let mut client = Client::connect(address(kirin));
    client.send("GET /metrics HTTP/1.1\r\nHost: evil.test\r\n\r\n");
    assert_eq!(client.read_reply().status, 403);
    assert!(!kirin.log().contains("everybody"), "{}", kirin.log());
}

#[test]
fn an_address_for_other_machines_takes_any_host_and_is_warned_of() {
    let site = Site::new().with("public/a", "a");
    let kirin = Kirin::start(
        &site,
        "metrics = \"*:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    kirin.wait_for_log("everybody who reaches");
    let port = address(&kirin).port();
    let mut client = Client::connect(SocketAddr::from(([127, 0, 0, 1], port)));
    client.send("GET /metrics HTTP/1.1\r\nHost: kirin.example:9145\r\n\r\n");
    let reply = client.read_reply();
    assert!(reply.status == 200 && reply.text().contains("kirin_build_info"), "{}", reply.text());
}

#[test]
fn the_admin_listener_has_the_same_metrics() {
    let site = Site::new().with("public/a", "a");
    let kirin = Kirin::start(
        &site,
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"unix:admin.sock\"\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    assert_eq!(kirin.get("/a").status, 200);
    let output = Command::new("curl")
        .args(["-sS", "--unix-socket", "admin.sock", "http://localhost/metrics"])
        .current_dir(site.root())
        .output()
        .expect("curl");
    let text = String::from_utf8_lossy(&output.stdout);
    let name = "kirin_requests_total{site=\"\",route=\"/\",place=\"files\",class=\"2xx\"}";
    assert_eq!(series(&text).get(name), Some(&1.0), "{text}");
}

#[test]
fn waits_crashes_and_reloads_of_an_application_are_counted() {
    let served = serve();
    let kirin = &served.kirin;
    let mut clients: Vec<_> = (0..3).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    clients.iter_mut().for_each(|client| assert_eq!(client.read_reply().status, 200));
    // One worker: two of three had to wait.
    wait_for_series(kirin, "kirin_app_queue_wait_seconds_count{app=\"web\"}", 2.0);
    let metrics = series(&read(kirin));
    assert!(metrics["kirin_app_request_seconds_sum{app=\"web\"}"] >= 0.9, "{metrics:?}");
    assert!(metrics["kirin_app_workers_resident_memory_bytes{app=\"web\"}"] > 1e6, "{metrics:?}");
    // The upstream of the same name has no part in this.
    assert_eq!(metrics["kirin_upstream_queue_wait_seconds_count{upstream=\"web\"}"], 0.0);
    kirin.connect().post("/crash", "text/plain", b"");
    wait_for_series(
        kirin,
        "kirin_app_worker_replacements_total{app=\"web\",reason=\"crash\"}",
        1.0,
    );
    wait_for_series(
        kirin,
        "kirin_app_requests_failed_total{app=\"web\",reason=\"worker_lost\"}",
        1.0,
    );
    kirin.signal(Signal::HUP);
    wait_for_series(kirin, "kirin_app_reloads_total{app=\"web\",result=\"ok\"}", 1.0);
    std::fs::write(served._site.path("app.psgi"), "die 'no'").expect("a file");
    kirin.signal(Signal::HUP);
    wait_for_series(kirin, "kirin_app_reloads_total{app=\"web\",result=\"failed\"}", 1.0);
    wait_for_series(kirin, "kirin_app_up{app=\"web\"}", 1.0);
}

#[test]
fn refusals_and_cut_responses_are_counted() {
    let served = serve();
    let kirin = &served.kirin;
    assert_eq!(kirin.get("/limited/page.txt").status, 200);
    assert_eq!(kirin.get("/limited/page.txt").status, 429);
    wait_for_series(kirin, "kirin_requests_rate_limited_total", 1.0);
    let mut client = kirin.connect();
    client.send(format!("GET / HTTP/1.1\r\nHost: test\r\nX: {}\r\n\r\n", "x".repeat(64 << 10)));
    assert_eq!(client.read_reply().status, 431);
    let listener = "listener=\"127.0.0.1:0\"";
    wait_for_series(
        kirin,
        &format!("kirin_requests_rejected_total{{{listener},reason=\"head_too_large\"}}"),
        1.0,
    );
    let mut client = kirin.connect();
    client.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    client.read_some(1000);
    client.reset();
    wait_for_series(kirin, "kirin_responses_cut_total{site=\"\",route=\"/\"}", 1.0);
    let _idle = kirin.connect();
    let mut http2 = Http2Client::connect(kirin.address());
    assert_eq!(http2.get("/page.txt").status, 200);
    assert_eq!(http2.get("/page.txt").status, 200);
    wait_for_series(kirin, &format!("kirin_http2_streams_total{{{listener}}}"), 2.0);
    wait_for_series(kirin, &format!("kirin_http2_connections_total{{{listener}}}"), 1.0);
    wait_for_series(kirin, &format!("kirin_connections{{{listener},state=\"http2\"}}"), 1.0);
    wait_for_series(kirin, &format!("kirin_connections{{{listener},state=\"idle\"}}"), 1.0);
}

fn serve_tls(authority: &Authority) -> (Site, Kirin) {
    let site = Site::new().with("public/page.txt", "page\n");
    authority.issue_for_days("a.test", 1, 30).write(&site, "a");
    let kirin = Kirin::start(
        &site,
        "metrics = \"127.0.0.1:0\"\nthreads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    (site, kirin)
}

#[test]
fn handshakes_are_counted_by_version_and_the_expiry_is_known() {
    let authority = Authority::new("Kirin test authority");
    let (site, kirin) = serve_tls(&authority);
    for (version, name) in [(TLSv1_2, "1.2"), (TLSv1_3, "1.3")] {
        let setup = TlsSetup::new(&authority, None, version);
        for resumed in ["no", "yes"] {
            let mut client =
                TlsClient::connect(kirin.address(), "a.test", &setup).expect("a handshake");
            client.get_and_close("/page.txt");
            let labels =
                format!("listener=\"127.0.0.1:0\",version=\"{name}\",resumed=\"{resumed}\"");
            wait_for_series(&kirin, &format!("kirin_tls_handshakes_total{{{labels}}}"), 1.0);
        }
    }
    let mut client = kirin.connect();
    client.send("nonsense\r\n\r\n");
    wait_for_series(&kirin, "kirin_tls_handshakes_failed_total{listener=\"127.0.0.1:0\"}", 1.0);
    let expiry =
        "kirin_certificate_expiry_timestamp_seconds{listener=\"127.0.0.1:0\",name=\"a.test\"}";
    let days = |text: &str| {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs_f64();
        (series(text)[expiry] - now) / 86_400.0
    };
    let before = days(&read(&kirin));
    assert!((29.0..=30.0).contains(&before), "{before}");
    authority.issue_for_days("a.test", 1, 60).write(&site, "a");
    kirin.signal(Signal::HUP);
    wait_for_series(&kirin, "kirin_reloads_total{result=\"ok\"}", 1.0);
    let after = days(&read(&kirin));
    assert!((59.0..=60.0).contains(&after), "{after}");
}

#[test]
fn failures_of_a_server_are_counted_and_its_state_is_shown() {
    let backend = Backend::start(|mut connection| drop(connection.read_request()));
    let site = Site::new();
    let address = backend.address();
    let kirin = Kirin::start(
        &site,
        &format!(
            "metrics = \"127.0.0.1:0\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"api\"\n\
             servers = [\"{address}\"]\nmax_failures = 2\nejection_time = \"1h\"\n[[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
        ),
    );
    for _ in 0..2 {
        assert_eq!(kirin.connect().post("/", "text/plain", b"x").status, 502);
    }
    let labels = format!("upstream=\"api\",server=\"http://{address}\"");
    let metrics = read(&kirin);
    let labels = if metrics.contains(&labels) {
        labels
    } else {
        format!("upstream=\"api\",server=\"{address}\"")
    };
    wait_for_series(&kirin, &format!("kirin_upstream_server_failures_total{{{labels}}}"), 2.0);
    wait_for_series(&kirin, &format!("kirin_upstream_server_ejections_total{{{labels}}}"), 1.0);
    wait_for_series(
        &kirin,
        &format!("kirin_upstream_server_state{{{labels},state=\"ejected\"}}"),
        1.0,
    );
    wait_for_series(
        &kirin,
        &format!("kirin_upstream_server_state{{{labels},state=\"available\"}}"),
        0.0,
    );
}

#[test]
fn an_upgrade_is_counted_by_the_program_that_took_over() {
    let site = Site::new().with("public/a", "a").with(
        "kirin.toml",
        "metrics = \"unix:metrics.sock\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    let kirin = Kirin::start_with(&site, &["serve", "--pid-file", "pid"]);
    let upgrades = || {
        let output = Command::new("curl")
            .args(["-sS", "--unix-socket", "metrics.sock", "http://localhost/metrics"])
            .current_dir(site.root())
            .output()
            .expect("curl");
        let text = String::from_utf8_lossy(&output.stdout);
        series(&text).get("kirin_upgrades_total{result=\"ok\"}").copied()
    };
    assert_eq!(upgrades(), Some(0.0), "{}", kirin.log());
    kirin.signal(Signal::USR2);
    wait_for("the metrics of the new program", || (upgrades() == Some(1.0)).then_some(()));
    let pid = std::fs::read_to_string(site.path("pid")).expect("a pid file");
    let pid = Pid::from_raw(pid.trim().parse().expect("a pid")).expect("a pid");
    kill_process(pid, Signal::TERM).expect("kill");
}
