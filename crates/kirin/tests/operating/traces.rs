//! Traces, received by the real OpenTelemetry collector (`tests/otelcol`). It sends what it has
//! received as JSON to a backend of the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use kirin_tests::{Backend, Kirin, LeasedPort, Site, wait_for};
use serde_json::Value;

const PSGI: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    return [200, ['Content-Type' => 'text/plain'], ["part"]] if $env->{PATH_INFO} eq '/part';
    return [200, ['Content-Type' => 'text/html'], ['<!--# include virtual="/part" -->']]
        if $env->{PATH_INFO} eq '/page';
    return [200, ['Content-Type' => 'text/plain'], [$env->{HTTP_TRACEPARENT} // 'none']];
};
"#;

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The collector. It ends with the test.
struct Collector {
    child: Child,
    port: u16,
    _lease: LeasedPort,
    received: Arc<Mutex<Vec<Value>>>,
    _backend: Backend,
}

impl Drop for Collector {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn collector_binary() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/otelcol/otelcol");
    assert!(path.exists(), "{} is not there: run tests/install_otelcol.sh", path.display());
    path
}

/// Starts the collector, and waits until it listens on `port`.
fn start_on(port: u16, site: &Site, backend: &Backend) -> Child {
    let config = format!(
        r#"
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  otlphttp:
    endpoint: http://{}
    encoding: json
    compression: none
    sending_queue:
      enabled: false
service:
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [otlphttp]
"#,
        backend.address()
    );
    std::fs::write(site.path("collector.yaml"), config).unwrap();
    let mut child = Command::new(collector_binary())
        .arg("--config")
        .arg(format!("file:{}", site.path("collector.yaml").display()))
        .stderr(File::create(site.path("collector.log")).unwrap())
        .spawn()
        .unwrap();
    wait_for("the collector", || {
        let said = || std::fs::read_to_string(site.path("collector.log"));
        assert!(child.try_wait().unwrap().is_none(), "no collector: {:?}", said());
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    });
    child
}

impl Collector {
    fn start(site: &Site) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&received);
        let backend = Backend::answering(move |request| {
            if let Ok(batch) = serde_json::from_slice(&request.body) {
                sink.lock().unwrap().push(batch);
            }
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
                .into()
        });
        let lease = LeasedPort::lease();
        let port = lease.number();
        let child = start_on(port, site, &backend);
        Self { child, port, _lease: lease, received, _backend: backend }
    }

    /// Returns all spans that have been received.
    fn spans(&self) -> Vec<Value> {
        let mut spans = Vec::new();
        for batch in &*self.received.lock().unwrap() {
            for resource in batch["resourceSpans"].as_array().unwrap() {
                let service = resource["resource"]["attributes"].to_string();
                assert!(service.contains("memo site"), "{service}");
                for scope in resource["scopeSpans"].as_array().unwrap() {
                    spans.extend(scope["spans"].as_array().unwrap().iter().cloned());
                }
            }
        }
        spans
    }

    /// Waits for the span of a request, and returns it with its descendants.
    fn wait_for(&self, name: &str) -> Vec<Value> {
        wait_for(&format!("the span {name}"), || {
            let spans = self.spans();
            let root = spans.iter().find(|span| span["name"] == name)?.clone();
            let mut tree = vec![root];
            let mut at = 0;
            while let Some(parent) = tree.get(at).map(|span| span["spanId"].clone()) {
                tree.extend(spans.iter().filter(|span| span["parentSpanId"] == parent).cloned());
                at += 1;
            }
            Some(tree)
        })
    }
}

fn serve(site: &Site, port: u16, upstream: &Backend, traces: &str) -> Kirin {
    let upstream = upstream.address();
    let config = format!(
        r#"
        [traces]
        endpoint = "http://127.0.0.1:{port}"
        service = "memo site"
        {traces}
        [[listener]]
        address = "127.0.0.1:0"
        [[app]]
        name = "web"
        load = "app.psgi"
        workers = 1
        [[upstream]]
        name = "api"
        servers = ["http://{upstream}"]
        [[route]]
        path = "/api"
        try = ["proxy:api"]
        cache = {{ ttl = "1m" }}
        [[route]]
        path = "/"
        try = ["app:web"]
        ssi = true
        "#
    );
    Kirin::start(site, &config)
}

fn upstream() -> Backend {
    Backend::answering(|request| {
        let trace = request.field("traceparent").unwrap_or("none");
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{trace}", trace.len())
    })
}

fn names(tree: &[Value]) -> Vec<&str> {
    tree.iter().map(|span| span["name"].as_str().unwrap()).collect()
}

#[test]
fn the_collector_gets_a_request_with_its_parts() {
    let (site, upstream) = (Site::new().with("app.psgi", PSGI), upstream());
    let collector = Collector::start(&site);
    let kirin = serve(&site, collector.port, &upstream, "");
    let field = format!("traceparent: 00-{TRACE_ID}-00f067aa0ba902b7-01\r\n");
    let text = kirin.connect().request("GET", "/hello?secret=1", &field).text();
    let tree = collector.wait_for("GET /");
    assert_eq!(names(&tree), ["GET /", "worker web"], "{tree:#?}");
    let request = &tree[0];
    assert_eq!(
        (&request["traceId"], &request["parentSpanId"]),
        (&TRACE_ID.into(), &"00f067aa0ba902b7".into())
    );
    // The application continues the span of the request.
    assert_eq!(text, format!("00-{TRACE_ID}-{}-01", request["spanId"].as_str().unwrap()));
    let attributes = request["attributes"].to_string();
    assert!(attributes.contains("/hello") && !attributes.contains("secret"), "{attributes}");
    assert!(tree[1]["attributes"].to_string().contains("process.pid"), "{tree:#?}");
}

#[test]
fn includes_upstreams_and_the_cache_are_parts_of_a_trace() {
    let (site, upstream) = (Site::new().with("app.psgi", PSGI), upstream());
    let collector = Collector::start(&site);
    let kirin = serve(&site, collector.port, &upstream, "");
    let mut client = kirin.connect();
    assert_eq!(client.get("/page").text(), "part");
    let page = collector.wait_for("GET /");
    assert_eq!(names(&page), ["GET /", "worker web", "include /part", "worker web"], "{page:#?}");
    let first = client.get("/api").text();
    assert!(first.starts_with("00-"), "{first}");
    assert_eq!(client.get("/api").text(), first, "from the cache");
    let api = collector.wait_for("GET /api");
    assert_eq!(names(&api), ["GET /api", "upstream api"], "{api:#?}");
    let server = upstream.address().to_string();
    assert!(api[1]["attributes"].to_string().contains(&server), "{api:#?}");
    let hit = wait_for("the span of the hit", || {
        let spans = collector.spans();
        spans.into_iter().find(|span| span["attributes"].to_string().contains("\"HIT\""))
    });
    assert_eq!(hit["name"], "GET /api");
}

#[test]
fn requests_are_answered_without_a_collector() {
    let (site, upstream) = (Site::new().with("app.psgi", PSGI), upstream());
    // No process listens on this port.
    let nobody = LeasedPort::lease();
    let kirin = serve(&site, nobody.number(), &upstream, "");
    let mut client = kirin.connect();
    assert!(client.get("/").text().starts_with("00-"));
    kirin.wait_for_log("traces cannot be exported");
    assert_eq!(client.get("/page").text(), "part");
}

#[test]
fn an_unsampled_trace_is_passed_on_and_not_exported() {
    let (site, upstream) = (Site::new().with("app.psgi", PSGI), upstream());
    let collector = Collector::start(&site);
    let mut kirin = serve(&site, collector.port, &upstream, "sample = 0.0");
    let field = format!("traceparent: 00-{TRACE_ID}-00f067aa0ba902b7-01\r\n");
    let text = kirin.connect().request("GET", "/", &field).text();
    assert!(text.starts_with(&format!("00-{TRACE_ID}-")) && text.ends_with("-00"), "{text}");
    // The end exports all that is queued.
    kirin.signal(rustix::process::Signal::TERM);
    kirin.wait();
    assert_eq!(collector.spans(), Vec::<Value>::new());
}

#[test]
fn a_stranger_cannot_choose_a_trace_id_that_is_recorded() {
    let site = Site::new().with("app.psgi", PSGI);
    // Nothing listens on port 9. Which traces are recorded is in the field.
    let kirin = Kirin::start(
        &site,
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [traces]\nendpoint = \"http://127.0.0.1:9\"\nsample = 0.001\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n",
    );
    let mut client = kirin.connect();
    let mut is_recorded = || {
        let field = "traceparent: 00-00000000000000000000000000000001-00f067aa0ba902b7-01\r\n";
        let reply = client.request("GET", "/", field).text();
        assert!(reply.starts_with("00-00000000000000000000000000000001-"), "{reply}");
        reply.ends_with("-01")
    };
    let recorded = (0..300).filter(|_| is_recorded()).count();
    // The chance of more than ten is below one in 10^10.
    assert!(recorded <= 10, "{recorded} of 300");
}
