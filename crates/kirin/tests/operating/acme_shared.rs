//! Several machines share one account, one certificate and one order.
//!
//! Each has a state directory of its own, and the same Redis server behind its store. Pebble sends
//! its challenges to one of them only.

use std::fmt::from_fn;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use kirin_tests::{
    Authority, Client, Http2Client, Kirin, Pebble, PebbleSetup, RedisServer, Site, TlsClient,
    TlsSetup, run_kirin, wait_for, wait_long,
};
use rustix::process::{Signal, geteuid};

use crate::acme::{command, connect, keep, kept};
use crate::origin_chaos::proxy::{Mode, Proxy};

/// The message of a machine that serves what another one got.
const TOOK_OVER: &str = "serving a certificate that another machine got for ";

/// The message of a machine that serves what it got itself.
const GOT: &str = "serving a new certificate for ";

/// The message of a machine that orders.
const ASKING: &str = "INFO asking ";

/// The keys of two groups of machines.
const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
const OTHER_KEY: &str = "Zm9yIHRlc3RzIG9ubHksIGFuZCBmb3Igbm9ib2R5IGE=";

/// A Kirin with a state directory of its own.
struct Machine {
    site: Site,
    kirin: Kirin,
}

/// Writes the key of a machine, which only its owner may read.
fn write_key(site: &Site, key: &str) {
    let file = site.path("acme.key");
    fs::write(&file, key).expect("a key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
}

fn new_site() -> Site {
    let site = Site::new().with("www/hello.txt", "hello\n");
    write_key(&site, KEY);
    site
}

/// Returns a configuration with a certificate that machines share.
fn config(pebble: &Pebble, origin: &str, name: &str) -> String {
    let url = pebble.url();
    format!(
        r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
[listener.tls]
acme = {{ domains = ["{name}"], directory = "{url}", shared_key_file = "acme.key" }}
[[listener]]
address = "127.0.0.1:0"
redirect_to_https = 443
[store]
memory = "4MB"
origin = "{origin}"
origin_timeout = "5s"
[[route]]
path = "/"
try = ["files:www"]
"#
    )
}

impl Machine {
    fn start(pebble: &Pebble, redis: &RedisServer) -> Self {
        Self::start_at(new_site(), pebble, &format!("redis://{}", redis.address()))
    }

    fn start_at(site: Site, pebble: &Pebble, origin: &str) -> Self {
        Self::start_for(site, pebble, origin, "a.test")
    }

    fn start_for(site: Site, pebble: &Pebble, origin: &str, name: &str) -> Self {
        Self::start_with(site, pebble, &config(pebble, origin, name))
    }

    fn start_with(site: Site, pebble: &Pebble, config: &str) -> Self {
        fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
        let kirin = Kirin::start_command(command(&site, pebble).arg("serve"));
        Self { site, kirin }
    }

    /// Kills it with -9, and returns its directory.
    fn kill(mut self) -> Site {
        self.kirin.signal(Signal::KILL);
        self.kirin.wait();
        self.site
    }

    /// Lets the authority send its challenges here.
    fn is_looked_at(&self, pebble: &Pebble) {
        pebble.look_at(self.kirin.address_of(1));
    }

    /// Returns the file with its certificate.
    fn file(&self, pebble: &Pebble) -> PathBuf {
        kept(&self.site, pebble).join("a.test.pem")
    }

    /// Returns its certificate and its key.
    fn certificate(&self, pebble: &Pebble) -> String {
        fs::read_to_string(self.file(pebble)).expect("a certificate")
    }

    fn count_in_log(&self, text: &str) -> usize {
        self.kirin.log().matches(text).count()
    }

    fn wait_for_count(&self, text: &str, count: usize) {
        let missing = from_fn(|f| write!(f, "{count} times `{text}` in\n{}", self.kirin.log()));
        wait_for(&missing, || (self.count_in_log(text) >= count).then_some(()));
    }

    /// Checks that it serves a certificate that pebble has issued.
    fn serves(&self, pebble: &Pebble) {
        connect(&self.kirin, "a.test", &pebble.root()).unwrap_or_else(|error| {
            panic!("no certificate is served: {error}\n{}", self.kirin.log())
        });
    }
}

/// Returns all values on the server.
fn values_of(redis: &RedisServer) -> Vec<(String, String)> {
    let names = redis.command(&["KEYS", "*"]);
    let records = names.lines().map(|name| (name.to_owned(), redis.command(&["GET", name])));
    records.collect()
}

/// Returns the text of a record that nobody reads, as far as it changes with it.
fn record(redis: &RedisServer, part: &str) -> (String, String) {
    let found = values_of(redis).into_iter().find(|(name, _)| name.contains(part));
    found.unwrap_or_else(|| panic!("no {part} in {}", redis.command(&["KEYS", "*"])))
}

fn wait_for_shared_certificate(redis: &RedisServer) {
    wait_for("a certificate on the server", || {
        redis.command(&["KEYS", "*"]).contains("acme/certificate/").then_some(())
    });
}

#[test]
fn machines_have_one_account_one_certificate_and_one_order() {
    let (pebble, mut redis) = (Pebble::start(), RedisServer::start());
    let a = Machine::start(&pebble, &redis);
    a.kirin.wait_for_log(ASKING);
    let b = Machine::start(&pebble, &redis);
    // The order is that of A. B answers the authority.
    b.is_looked_at(&pebble);
    a.kirin.wait_for_log(GOT);
    b.kirin.wait_for_log(TOOK_OVER);
    // C starts later.
    let c = Machine::start(&pebble, &redis);
    c.kirin.wait_for_log(TOOK_OVER);
    let certificate = a.certificate(&pebble);
    for machine in [&a, &b, &c] {
        machine.serves(&pebble);
        assert_eq!(machine.certificate(&pebble), certificate);
    }
    assert_eq!((pebble.orders(), pebble.accounts()), (1, 1), "{}", pebble.log());
    assert_eq!(b.count_in_log(ASKING) + c.count_in_log(ASKING), 0);

    // The server has nothing that is of use without the key.
    let account = fs::read_to_string(kept(&a.site, &pebble).join("account.json"));
    let account = account.expect("an account");
    let (_, secret) = account.split_once("\"key_pkcs8\":\"").expect("a key");
    let (secret, _) = secret.split_once('"').expect("its end");
    let values = values_of(&redis);
    for kind in ["acme/account/", "acme/certificate/", "acme/answer/"] {
        assert!(values.iter().any(|(name, _)| name.contains(kind)), "{kind}: {values:?}");
    }
    for (name, value) in &values {
        for part in [secret, "PRIVATE KEY", "BEGIN", "key_pkcs8", "\"kty\""] {
            assert!(!value.contains(part) && !name.contains(part), "{part} in {name}: {value}");
        }
    }

    // B renews it. The others serve the new one without a restart.
    pebble.wants_renewal(&certificate);
    b.kirin.signal(Signal::HUP);
    b.kirin.wait_for_log(GOT);
    a.wait_for_count(TOOK_OVER, 1);
    c.wait_for_count(TOOK_OVER, 2);
    assert_ne!(b.certificate(&pebble), certificate);
    assert_eq!(a.certificate(&pebble), b.certificate(&pebble));
    assert_eq!((pebble.orders(), pebble.accounts()), (2, 1), "{}", pebble.log());

    // Each starts without the server and without the authority.
    redis.kill();
    let (site, root) = (c.kill(), pebble.root());
    let c = Machine::start_at(site, &pebble, &format!("redis://{}", redis.address()));
    connect(&c.kirin, "a.test", &root).expect("the certificate from before");
    assert_eq!(c.count_in_log(ASKING), 0);
}

#[test]
fn every_machine_answers_the_challenge_of_another_one() {
    let (pebble, redis) = (Pebble::start(), RedisServer::start());
    let a = Machine::start(&pebble, &redis);
    let b = Machine::start(&pebble, &redis);
    let token = pebble.wait_for_challenge();
    let target = format!("/.well-known/acme-challenge/{token}");
    for machine in [&a, &b] {
        // B may have no connection yet.
        let missing = from_fn(|f| write!(f, "an answer in\n{}", machine.kirin.log()));
        let reply = wait_for(&missing, || {
            let reply = Client::connect(machine.kirin.address_of(1)).get(&target);
            (reply.status == 200).then_some(reply)
        });
        assert!(reply.text().starts_with(&format!("{token}.")), "{}", reply.text());
        assert_eq!(reply.field("content-type"), Some("application/octet-stream"));
        let reply = Http2Client::connect(machine.kirin.address_of(1)).get(&target);
        assert!(reply.text().starts_with(&format!("{token}.")), "{}", reply.text());
        // Others, and what no authority sends, are for the routes.
        let mut client = Client::connect(machine.kirin.address_of(1));
        assert_eq!(client.get("/.well-known/acme-challenge/unknown").status, 404);
        let long = format!("/.well-known/acme-challenge/{}", "a".repeat(129));
        assert_eq!(client.get(&long).status, 404);
        assert_eq!(client.request("POST", &target, "Content-Length: 0\r\n").status, 404);
        assert_eq!(client.get("/.well-known/acme-challenge/a/b").status, 308);
        let mut client = Http2Client::connect(machine.kirin.address_of(1));
        assert_eq!(client.get("/.well-known/acme-challenge/unknown").status, 404);
    }
    // What somebody else has written to the server proves nothing.
    let (name, _) = record(&redis, "acme/answer/");
    let forged = name.replace(&token, "forged");
    redis.command(&["SET", &forged, "forged.print"]);
    redis.command(&["COPY", &name, &name.replace(&token, "copied")]);
    for token in ["forged", "copied"] {
        let target = format!("/.well-known/acme-challenge/{token}");
        assert_eq!(Client::connect(b.kirin.address_of(1)).get(&target).status, 404);
    }
}

#[test]
fn every_machine_proves_a_name_by_tls_for_another_one() {
    let pebble = Pebble::start_with(&PebbleSetup { looks_at_tls: true, ..<_>::default() });
    let redis = RedisServer::start();
    let config = config(&pebble, &format!("redis://{}", redis.address()), "a.test");
    let plain = "[[listener]]\naddress = \"127.0.0.1:0\"\nredirect_to_https = 443\n";
    assert!(config.contains(plain));
    let start = || Machine::start_with(new_site(), &pebble, &config.replace(plain, ""));
    let a = start();
    a.kirin.wait_for_log(ASKING);
    let b = start();
    // The certificate is made on the machine that is asked, as soon as it has a connection.
    let missing = from_fn(|f| write!(f, "a proof in\n{}", b.kirin.log()));
    let authority = TlsSetup::of_authority();
    wait_for(&missing, || TlsClient::connect(b.kirin.address(), "a.test", &authority).ok());
    assert!(TlsClient::connect(b.kirin.address(), "b.test", &authority).is_err());
    // What somebody else has written to the server proves nothing.
    let (name, _) = record(&redis, "acme/proof/");
    redis.command(&["COPY", &name, &name.replace("a.test", "copied.test")]);
    assert!(TlsClient::connect(b.kirin.address(), "copied.test", &authority).is_err());
    pebble.look_at_tls(b.kirin.address());
    a.kirin.wait_for_log(GOT);
    b.kirin.wait_for_log(TOOK_OVER);
    a.serves(&pebble);
    b.serves(&pebble);
    assert_eq!((pebble.orders(), b.count_in_log(ASKING)), (1, 0), "{}", pebble.log());
}

#[test]
fn a_machine_that_dies_before_its_order_is_followed_by_another() {
    let (pebble, redis) = (Pebble::start(), RedisServer::start());
    pebble.pause();
    let a = Machine::start(&pebble, &redis);
    a.kirin.wait_for_log(ASKING);
    let b = Machine::start(&pebble, &redis);
    b.kirin.wait_for_log("another machine asks");
    drop(a.kill());
    pebble.resume();
    b.is_looked_at(&pebble);
    b.kirin.wait_for_log(GOT);
    b.serves(&pebble);
}

#[test]
fn a_machine_that_dies_while_the_authority_looks_is_followed_by_another() {
    let (pebble, redis) = (Pebble::start(), RedisServer::start());
    let a = Machine::start(&pebble, &redis);
    a.kirin.wait_for_log(ASKING);
    let b = Machine::start(&pebble, &redis);
    b.kirin.wait_for_log("another machine asks");
    pebble.wait_for_challenge();
    let site = a.kill();
    b.is_looked_at(&pebble);
    b.kirin.wait_for_log(GOT);
    b.serves(&pebble);
    // The account is that of the first one, which comes back.
    let a = Machine::start_at(site, &pebble, &format!("redis://{}", redis.address()));
    a.kirin.wait_for_log(TOOK_OVER);
    assert_eq!((a.count_in_log(ASKING), pebble.accounts()), (0, 1), "{}", pebble.log());
}

#[test]
fn a_machine_that_dies_before_it_shares_its_certificate_is_followed_by_another() {
    let (pebble, redis) = (Pebble::start(), RedisServer::start());
    let proxy = Proxy::start(redis.address());
    let origin = format!("redis://{}", redis.address());
    let a = Machine::start_at(new_site(), &pebble, &format!("redis://{}", proxy.address()));
    a.kirin.wait_for_log(ASKING);
    let b = Machine::start_at(new_site(), &pebble, &origin);
    b.kirin.wait_for_log("another machine asks");
    pebble.wait_for_challenge();
    // From here on nothing of A arrives at the server.
    proxy.set(Mode::BlackHole);
    a.is_looked_at(&pebble);
    wait_for("the certificate of A", || a.file(&pebble).exists().then_some(()));
    let (first, site) = (a.certificate(&pebble), a.kill());
    b.is_looked_at(&pebble);
    b.kirin.wait_for_log(GOT);
    b.serves(&pebble);
    // The first one comes back with its own. Both end with the newer one.
    let a = Machine::start_at(site, &pebble, &origin);
    wait_for("one certificate", || {
        (a.certificate(&pebble) == b.certificate(&pebble)).then_some(())
    });
    assert_ne!(b.certificate(&pebble), first, "the certificate of B was issued later");
    assert_eq!((a.count_in_log(ASKING), pebble.orders()), (0, 2), "{}", a.kirin.log());
}

#[test]
fn a_machine_with_another_key_says_so_and_overwrites_nothing() {
    let (pebble, redis) = (Pebble::start(), RedisServer::start());
    let a = Machine::start(&pebble, &redis);
    a.is_looked_at(&pebble);
    a.kirin.wait_for_log(GOT);
    wait_for_shared_certificate(&redis);
    let before = (record(&redis, "acme/certificate"), record(&redis, "acme/account"));

    let (own, site) = (Authority::new("Own"), new_site());
    write_key(&site, OTHER_KEY);
    keep(&site, &pebble, "a.test.pem", &own.issue_for_days("a.test", 1, 89));
    let b = Machine::start_at(site, &pebble, &format!("redis://{}", redis.address()));
    b.kirin
        .wait_for_log("was made with another `shared_key_file`; give all machines the same file");
    assert!(b.kirin.log().contains("kirin:r:acme/*"), "{}", b.kirin.log());
    connect(&b.kirin, "a.test", &own.pem()).expect("its own certificate");
    assert_eq!((record(&redis, "acme/certificate"), record(&redis, "acme/account")), before);

    // The operator repairs it.
    write_key(&b.site, KEY);
    let output = command(&b.site, &pebble).arg("reload").output().expect("kirin runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    b.kirin.wait_for_log(TOOK_OVER);
    b.serves(&pebble);
    assert_eq!((b.count_in_log(ASKING), pebble.orders()), (0, 1), "{}", b.kirin.log());
}

#[test]
fn a_failure_of_one_machine_is_one_of_all() {
    let (pebble, redis) = (Pebble::start(), RedisServer::start());
    let start = || {
        let origin = format!("redis://{}", redis.address());
        Machine::start_for(new_site(), &pebble, &origin, "www.refused.test")
    };
    pebble.pause();
    let a = start();
    a.kirin.wait_for_log(ASKING);
    let b = start();
    b.kirin.wait_for_log("another machine asks");
    pebble.resume();
    a.kirin.wait_for_log("no certificate for www.refused.test");
    b.kirin.wait_for_log("another machine got no certificate for www.refused.test");
    assert_eq!(b.count_in_log(ASKING), 0, "{}", b.kirin.log());
    // An operator's word counts.
    b.kirin.signal(Signal::HUP);
    b.kirin.wait_for_log("no certificate for www.refused.test from");
}

#[test]
fn a_machine_without_origin_and_certificate_orders_alone_and_shares_later() {
    let (pebble, mut redis) = (Pebble::start(), RedisServer::start());
    redis.kill();
    let a = Machine::start(&pebble, &redis);
    a.is_looked_at(&pebble);
    let missing = from_fn(|f| write!(f, "an order in\n{}", a.kirin.log()));
    wait_long(Duration::from_secs(60), &missing, || {
        a.kirin.log().contains("ordering one without the others").then_some(())
    });
    a.kirin.wait_for_log(GOT);
    redis.restart();
    wait_for_shared_certificate(&redis);
    let b = Machine::start(&pebble, &redis);
    b.kirin.wait_for_log(TOOK_OVER);
    assert_eq!((b.count_in_log(ASKING), pebble.orders()), (0, 1), "{}", b.kirin.log());
    // The server has lost everything. The machines still have the certificate.
    redis.restart();
    wait_for_shared_certificate(&redis);
    let c = Machine::start(&pebble, &redis);
    c.kirin.wait_for_log(TOOK_OVER);
    assert_eq!(pebble.orders(), 1);
}

#[test]
fn a_shared_key_needs_an_origin_and_a_file_that_others_cannot_read() {
    let site = new_site();
    let whole = "[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\nacme = { domains = [\"a.test\"], \
                 shared_key_file = \"acme.key\" }\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                 [[route]]\npath = \"/\"\ntry = [\"files:www\"]\n";
    let said = |config: &str| {
        fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
        let output = run_kirin(&site, &["check"]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_right, text) = said(whole);
    assert!(!is_right && text.contains("`acme.shared_key_file` without `store.origin`"), "{text}");
    let with_origin = format!("{whole}[store]\norigin = \"redis://127.0.0.1:1\"\n");
    let (is_right, text) = said(&with_origin);
    assert!(is_right, "{text}");
    let (is_right, text) = said(&with_origin.replace("acme.key", "none.key"));
    assert!(!is_right && text.contains("openssl rand -hex 32"), "{text}");
    if geteuid().is_root() {
        // The user who serves reads it again on HUP.
        fs::set_permissions(site.root(), fs::Permissions::from_mode(0o755)).expect("a mode");
        let (is_right, text) = said(&format!("user = \"nobody\"\n{with_origin}"));
        assert!(!is_right && text.contains("acme.key: the user nobody, who serves"), "{text}");
    }
    write_key(&site, "s3cret");
    let (is_right, text) = said(&with_origin);
    assert!(!is_right && text.contains("is no key") && !text.contains("s3cret"), "{text}");
}
