//! Request ids and `traceparent`: what workers, upstreams, pages and visitors get.

use kirin_tests::{Backend, Http2Client, Kirin, Memcached, Site, wait_for};

const PSGI: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    return [500, [], []] if $env->{PATH_INFO} eq '/own';
    kill KILL => $$ if $env->{PATH_INFO} eq '/killed';
    die 'it has failed' if $env->{PATH_INFO} eq '/dies';
    $env->{'psgix.logger'}->({ level => 'info', message => 'all is well' }) if $env->{PATH_INFO} eq '/logs';
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/plain', 'Content-Length' => 4_000_000]]);
        # More than the front takes with its first read.
        $writer->write('x' x 3_000_000);
        kill KILL => $$;
    } if $env->{PATH_INFO} eq '/cut';
    my @names = grep { /REQUEST_ID|TRACEPARENT/ } sort keys %$env;
    return [200, ['Content-Type' => 'text/html'], [join ' ', map { "$_=$env->{$_}" } @names]];
};
"#;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn serve(site: &Site, listener: &str, backend: &Backend) -> Kirin {
    let address = backend.address();
    let config = format!(
        r#"
        [store]
        memcached = ["unix:m.sock"]
        [[listener]]
        address = "127.0.0.1:0"
        {listener}
        [[app]]
        name = "web"
        load = "app.psgi"
        workers = 1
        [[upstream]]
        name = "api"
        servers = ["http://{address}"]
        [[route]]
        path = "/api"
        try = ["proxy:api"]
        [[route]]
        path = "/"
        try = ["store", "app:web"]
        "#
    );
    Kirin::start(site, &config)
}

fn site() -> Site {
    Site::new().with("app.psgi", PSGI)
}

/// Answers with the fields of the request that are about ids.
fn backend() -> Backend {
    Backend::answering(|request| {
        let id = request.field("x-request-id").unwrap_or_default();
        let trace = request.field("traceparent").unwrap_or_default();
        let body = format!("{id} {trace}");
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    })
}

/// Returns the id in what the application answers.
fn id_in(text: &str) -> String {
    let id = text.split("HTTP_X_REQUEST_ID=").nth(1).unwrap_or_else(|| panic!("{text}"));
    id.chars().take_while(|character| !character.is_whitespace() && *character != '<').collect()
}

#[test]
fn a_stranger_does_not_name_the_request() {
    let (site, backend) = (site(), backend());
    let kirin = serve(&site, "", &backend);
    let mut client = kirin.connect();
    let fields = format!("X-Request-Id: evil\r\ntraceparent: {TRACE}\r\n");
    let first = client.request("GET", "/", &fields).text();
    let second = client.request("GET", "/", &fields).text();
    for text in [&first, &second] {
        let id = id_in(text);
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
        assert!(text.contains(&format!("HTTP_TRACEPARENT={TRACE}")), "{text}");
    }
    assert_ne!(id_in(&first), id_in(&second));
    let proxied = client.request("GET", "/api", &fields).text();
    let (id, trace) = proxied.split_once(' ').unwrap();
    assert!(id.len() == 32 && trace == TRACE, "{proxied}");
}

#[test]
fn a_trusted_proxy_names_the_request() {
    let (site, backend) = (site(), backend());
    let kirin = serve(&site, "trusted = [\"127.0.0.1\"]", &backend);
    let mut client = kirin.connect();
    let taken = client.request("GET", "/", "X-Request-Id: front-7/a\r\n").text();
    assert_eq!(id_in(&taken), "front-7/a");
    let proxied = client.request("GET", "/api", "X-Request-Id: front-8\r\n").text();
    assert_eq!(proxied, "front-8 ");
    let forged = client.request("GET", "/", "X-Request-Id: a\" \"b\r\n").text();
    assert_eq!(id_in(&forged).len(), 32, "{forged}");
}

#[test]
fn a_page_and_its_parts_have_one_id() {
    let (site, backend) = (site(), backend());
    let kirin = serve(&site, "trusted = [\"127.0.0.1\"]", &backend);
    let mut store = Memcached::connect(&site.path("m.sock"));
    store.set(
        "/page",
        b"text/html\r\n<!--# echo var=\"request_id\" --> <!--# include virtual=\"/part\" -->",
    );
    let page = kirin.connect().request("GET", "/page", "X-Request-Id: front-9\r\n").text();
    assert_eq!(page, "front-9 HTTP_X_REQUEST_ID=front-9");
}

#[test]
fn a_failure_of_the_server_tells_the_visitor_the_id() {
    let (site, backend) = (site(), backend());
    let kirin = serve(&site, "access_log = \"access.log\"", &backend);
    let reply = kirin.get("/killed");
    let id = reply.field("x-request-id").unwrap_or_else(|| panic!("{reply:?}")).to_owned();
    assert_eq!((reply.status, id.len()), (502, 32), "{reply:?}");
    assert_eq!(reply.text(), format!("502 Bad Gateway\nRequest id: {id}\n"));
    // The worker answers for an application that has died.
    let died = kirin.get("/dies");
    let id = died.field("x-request-id").unwrap_or_else(|| panic!("{died:?}"));
    assert_eq!((died.status, id.len()), (500, 32), "{died:?}");
    assert_eq!(died.text(), format!("Internal Server Error\nRequest id: {id}\n"));
    wait_for("the reason, beside the id", || line_of(&kirin, id, "GET /dies: it has failed"));
    // The application's own answer stays as it is.
    let own = kirin.get("/own");
    assert_eq!((own.status, own.field("x-request-id")), (500, None), "{own:?}");
}

/// Returns whether the log has a line with `text` and the id of this request.
fn line_of(kirin: &Kirin, id: &str, text: &str) -> Option<()> {
    let named = format!("request_id={id}");
    kirin.log().lines().any(|line| line.contains(text) && line.contains(&named)).then_some(())
}

#[test]
fn lines_of_the_log_about_a_request_name_it() {
    let site = site().with("broken.lua", "return function(request) error('no luck') end");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let backend =
        Backend::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour".to_owned());
    let config = format!(
        r#"
        [[listener]]
        address = "127.0.0.1:0"
        trusted = ["127.0.0.1"]
        [[app]]
        name = "web"
        load = "app.psgi"
        workers = 2
        slow = "50ms"
        [[upstream]]
        name = "silent"
        servers = ["http://{}"]
        first_byte_timeout = "1s"
        [[upstream]]
        name = "short"
        servers = ["http://{}"]
        idle_timeout = "1s"
        [[route]]
        path = "/silent"
        try = ["proxy:silent"]
        [[route]]
        path = "/short"
        try = ["proxy:short"]
        [[route]]
        path = "/lua"
        try = ["lua:broken.lua"]
        [[route]]
        path = "/"
        try = ["app:web"]
        "#,
        nobody.local_addr().unwrap(),
        backend.address()
    );
    let kirin = Kirin::start(&site, &config);
    for (path, text) in [
        ("/killed", "request failed"),
        ("/dies", "it has failed"),
        ("/logs", "all is well"),
        ("/cut", "response was cut"),
        ("/silent", "request failed"),
        ("/short", "response was cut"),
        ("/lua", "no luck"),
    ] {
        let id = format!("one{}", path.replace('/', "-"));
        let mut client = kirin.connect();
        let fields = format!("Host: test\r\nX-Request-Id: {id}\r\nConnection: close\r\n");
        client.send(format!("GET {path} HTTP/1.1\r\n{fields}\r\n"));
        client.read_to_end();
        wait_for(&format!("{text} with {id} in the log:\n{}", kirin.log()), || {
            line_of(&kirin, &id, text)
        });
        let id = format!("two{}", path.replace('/', "-"));
        let mut client = Http2Client::connect(kirin.address());
        let pending = client.begin("GET", path, &[("x-request-id", &id)]);
        let _ = client.try_finish(pending);
        wait_for(&format!("{text} with {id} in the log:\n{}", kirin.log()), || {
            line_of(&kirin, &id, text)
        });
    }
}
