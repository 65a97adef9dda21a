//! Request ids and `traceparent`: what workers, upstreams, pages and visitors get.

use kirin_tests::{Backend, Kirin, Memcached, Site};

const PSGI: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    return [500, [], []] if $env->{PATH_INFO} eq '/own';
    kill KILL => $$ if $env->{PATH_INFO} eq '/killed';
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
    // The application's own answer stays as it is.
    let own = kirin.get("/own");
    assert_eq!((own.status, own.field("x-request-id")), (500, None), "{own:?}");
}
