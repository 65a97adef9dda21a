//! `PURGE` on ordinary listeners, through the built program.

use kirin_tests::{Kirin, Memcached, Reply, Site, run_kirin};

const APP: &str = r#"
sub { my $env = shift; [200, ['Content-Type' => 'text/plain'], ["application: $env->{REQUEST_METHOD}"]] };
"#;

fn config(purge_from: &str) -> String {
    format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemcached = [\"unix:m.sock\"]\n{purge_from}\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n\
         [[route]]\npath = \"/v1\"\ntry = [\"store\", \"app:web\"]\nrewrite = \"/v2\"\n"
    )
}

struct Running {
    kirin: Kirin,
    memcached: Memcached,
    _site: Site,
}

fn serve(purge_from: &str) -> Running {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &config(purge_from));
    let memcached = Memcached::connect(&site.path("m.sock"));
    Running::filled(kirin, memcached, site)
}

impl Running {
    /// Fills the store with the pages.
    fn filled(kirin: Kirin, memcached: Memcached, site: Site) -> Self {
        let mut running = Self { kirin, memcached, _site: site };
        for key in ["/a", "/a?x=1", "/b/1", "/b/2", "/v2/c"] {
            running
                .memcached
                .send(format!("ms {key} 13 Ptags=tag-{}\r\ntext/plain\r\np\r\n", key.len()));
            assert_eq!(running.memcached.line(), "HD");
        }
        running
    }

    fn purge(&self, target: &str, fields: &str) -> Reply {
        self.kirin.connect().request("PURGE", target, fields)
    }

    fn left(&mut self) -> Vec<&'static str> {
        let keys = ["/a", "/a?x=1", "/b/1", "/b/2", "/v2/c"];
        keys.into_iter().filter(|key| self.memcached.get(key).is_some()).collect()
    }
}

#[test]
fn allowed_addresses_purge_pages_prefixes_and_tags() {
    let mut running = serve("purge_from = [\"127.0.0.0/8\"]");
    let reply = running.purge("/a", "");
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (200, "{\"keys\":1,\"prefixes\":0,\"tags\":0}\n")
    );
    assert_eq!(reply.field("content-type"), Some("application/json"));
    assert_eq!(running.left(), ["/a?x=1", "/b/1", "/b/2", "/v2/c"]);
    let reply = running.purge("/a", "");
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (200, "{\"keys\":0,\"prefixes\":0,\"tags\":0}\n")
    );
    running.memcached.send("ms /soft 13\r\ntext/plain\r\np\r\n").line();
    let reply = running.purge("/soft", "Kirin-Purge: soft\r\n");
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (200, "{\"keys\":1,\"prefixes\":0,\"tags\":0}\n")
    );
    // `X` means that it is stale.
    assert_eq!(running.memcached.send("mg /soft t\r\n").line(), "HD t-1 X W");
    running.purge("/b/*", "");
    assert_eq!(running.left(), ["/a?x=1", "/v2/c"]);
    running.purge("/v1/c", "");
    assert_eq!(running.left(), ["/a?x=1"], "by its path before the rewrite");
    let reply = running.purge("/", "Kirin-Purge: tags=\"tag-6 never\", keys=\"/\"\r\n");
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (200, "{\"keys\":0,\"prefixes\":0,\"tags\":1}\n")
    );
    assert!(running.left().is_empty());
    let reply = running.purge("/", "Kirin-Purge: tag=\"a\"\r\n");
    assert_eq!(reply.status, 400);
    assert!(
        reply.text().contains("`tag` is not known; it is written as `tags="),
        "{}",
        reply.text()
    );
}

#[test]
fn from_other_addresses_purge_is_an_ordinary_method() {
    for purge_from in ["", "purge_from = [\"10.0.0.0/8\", \"unix:\"]"] {
        let mut running = serve(purge_from);
        let reply = running.purge("/*", "Kirin-Purge: prefixes=\"/\"\r\n");
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, "application: PURGE"),
            "{purge_from}"
        );
        assert_eq!(running.left().len(), 5);
    }
}

#[test]
fn a_purge_through_a_proxy_or_from_a_web_page_does_not_count() {
    let mut running = serve("purge_from = [\"127.0.0.1\"]");
    for field in [
        "X-Forwarded-For: 127.0.0.1",
        "Forwarded: for=127.0.0.1",
        "Via: 1.1 x",
        "X-Real-IP: 127.0.0.1",
        "Origin: http://test",
    ] {
        let reply = running.purge("/a", &format!("{field}\r\n"));
        assert_eq!(reply.text(), "application: PURGE", "{field}");
    }
    assert_eq!(running.left().len(), 5);
}

#[test]
fn purge_from_accepts_only_addresses() {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("kirin.toml", config("purge_from = [\"localhost\"]"));
    let output = run_kirin(&site, &["check"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && message.contains("`purge_from`: `localhost` is not an address"),
        "{message}"
    );
}

#[test]
fn a_listener_that_redirects_to_https_purges_for_allowed_addresses() {
    for (purge_from, status, left) in
        [("purge_from = [\"127.0.0.0/8\"]", 200, 4), ("purge_from = [\"192.0.2.1\"]", 308, 5)]
    {
        let site = Site::new().with("app.psgi", APP);
        let redirect = "address = \"127.0.0.1:0\"\nredirect_to_https = 443\n";
        let config = config(purge_from).replacen("address = \"127.0.0.1:0\"\n", redirect, 1);
        let kirin = Kirin::start(&site, &config);
        let memcached = Memcached::connect(&site.path("m.sock"));
        let mut running = Running::filled(kirin, memcached, site);
        let reply = running.purge("/a", "");
        assert_eq!(reply.status, status, "{purge_from}: {}", reply.head);
        assert_eq!(running.left().len(), left, "{purge_from}: {:?}", running.left());
        let reply = running.kirin.get("/a");
        assert_eq!(reply.status, 308, "{}", reply.head);
    }
}
