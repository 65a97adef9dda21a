//! Certificates from an authority. The authority is pebble, which is designed to find errors of
//! ACME clients and servers.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use kirin_tests::{
    Authority, Client, Issued, Kirin, Pebble, Site, TlsClient, TlsSetup, kirin_command, run_kirin,
    wait_for,
};
use rustix::process::{Signal, geteuid};
use rustls::ProtocolVersion::TLSv1_3;

fn site() -> Site {
    Site::new().with("www/hello.txt", "hello\n")
}

/// Runs `kirin serve --domain` on free ports.
fn serve_domains(site: &Site, pebble: &Pebble, domains: &[&str]) -> Command {
    let mut command = command(site, pebble);
    command.arg("serve");
    domains.iter().for_each(|domain| _ = command.args(["--domain", domain]));
    command.args(["--listen", "127.0.0.1:0", "--listen-http", "127.0.0.1:0", "www"]);
    command.args(["--acme-directory", &pebble.url(), "--email", "admin@a.test"]);
    command
}

/// Trusts pebble's directory, and keeps its state in the site.
pub fn command(site: &Site, pebble: &Pebble) -> Command {
    let mut command = kirin_command(site);
    command.env("SSL_CERT_FILE", pebble.own_authority()).env("STATE_DIRECTORY", site.path("state"));
    command
}

pub fn connect(kirin: &Kirin, name: &str, root: &str) -> std::io::Result<TlsClient> {
    TlsClient::connect(kirin.address(), name, &TlsSetup::with_root(root, None, TLSv1_3))
}

/// Returns where the site keeps the files that it got from `pebble`.
pub fn kept(site: &Site, pebble: &Pebble) -> PathBuf {
    let name = pebble.url().replace("https://", "").replace([':', '/'], "-");
    site.path("state/acme").join(name)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn https_needs_only_a_domain() {
    let (site, pebble) = (site(), Pebble::start());
    let kirin = Kirin::start_command(&mut serve_domains(&site, &pebble, &["a.test", "WWW.a.test"]));
    pebble.look_at(kirin.address_of(1));
    kirin.wait_for_log("serving a new certificate for a.test, www.a.test");
    let root = pebble.root();
    for name in ["a.test", "www.a.test"] {
        let reply = connect(&kirin, name, &root)
            .expect("a certificate that is trusted")
            .get_and_close("/hello.txt");
        assert!(reply.ends_with("hello\n"), "{reply}");
    }
    let mut http = Client::connect(kirin.address_of(1));
    assert_eq!(http.get("/hello.txt").field("location"), Some("https://test/hello.txt"));
    // The server answers only challenges of an order.
    assert_eq!(http.get("/.well-known/acme-challenge/unknown").status, 404);
    let kept = kept(&site, &pebble);
    let (account, certificate) = (kept.join("account.json"), kept.join("a.test.pem"));
    assert_eq!((mode(&kept), mode(&account), mode(&certificate)), (0o700, 0o600, 0o600));

    // It starts again without the authority.
    drop(kirin);
    let mut again = serve_domains(&site, &pebble, &["a.test", "www.a.test"]);
    drop(pebble);
    let kirin = Kirin::start_command(&mut again);
    connect(&kirin, "a.test", &root)
        .expect("the certificate from before")
        .get_and_close("/hello.txt");
    assert!(!kirin.log().contains("asking"), "{}", kirin.log());
}

/// Returns a configuration with `acme` for the domains.
fn config(pebble: &Pebble, domains: &str) -> String {
    let url = pebble.url();
    format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\nacme = {{ domains = [{domains}], directory = \
         \"{url}\" }}\n[[listener]]\naddress = \"127.0.0.1:0\"\nredirect_to_https = 443\n[[route]]\npath = \"/\"\n\
         try = [\"files:www\"]\n"
    )
}

pub fn start(site: &Site, pebble: &Pebble, config: &str) -> Kirin {
    fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    Kirin::start_command(command(site, pebble).arg("serve"))
}

/// Stores a certificate where the one of `pebble` would be.
pub fn keep(site: &Site, pebble: &Pebble, name: &str, issued: &Issued) {
    let kept = kept(site, pebble);
    fs::create_dir_all(&kept).expect("a directory");
    fs::write(kept.join(name), format!("{}{}", issued.key, issued.chain)).expect("a certificate");
}

#[test]
fn a_reload_asks_for_a_certificate_with_other_names_and_leaves_the_same_alone() {
    let (site, pebble) = (site(), Pebble::start());
    let kirin = start(&site, &pebble, &config(&pebble, "\"a.test\""));
    pebble.look_at(kirin.address_of(1));
    kirin.wait_for_log("serving a new certificate for a.test,");
    let reload = |domains: &str| {
        fs::write(site.path("kirin.toml"), config(&pebble, domains)).expect("kirin.toml");
        let mut reload = command(&site, &pebble);
        let output = reload.arg("reload").output().expect("kirin runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    reload("\"a.test\"");
    reload("\"a.test\", \"b.test\"");
    kirin.wait_for_log("serving a new certificate for a.test, b.test,");
    let root = pebble.root();
    assert!(connect(&kirin, "b.test", &root).is_ok());
    let asked = kirin.log().matches("asking ").count();
    assert_eq!(asked, 2, "{}", kirin.log());
}

#[test]
fn a_certificate_is_exchanged_while_connections_stay() {
    let (site, pebble) = (site(), Pebble::start());
    // Two thirds of its life are over. Kirin serves it and requests another one at once.
    let old = Authority::new("The old one");
    let issued = old.issue_for_days("a.test", 80, 10);
    keep(&site, &pebble, "a.test.pem", &issued);
    let kirin = start(&site, &pebble, &config(&pebble, "\"a.test\""));
    kirin.wait_for_log("asking");
    let mut before = connect(&kirin, "a.test", &old.pem()).expect("the old certificate");
    pebble.look_at(kirin.address_of(1));
    kirin.wait_for_log("serving a new certificate for a.test");
    assert!(before.get_and_close("/hello.txt").ends_with("hello\n"));
    let root = pebble.root();
    connect(&kirin, "a.test", &root).expect("the new certificate");
    // On HUP Kirin asks the authority, which answers that there is time. There are no files to read
    // again.
    kirin.signal(Signal::HUP);
    wait_for("the authority to be asked", || pebble.log().contains("/renewalInfo/").then_some(()));
    connect(&kirin, "a.test", &root).expect("the new certificate");
    assert_eq!(kirin.log().matches("asking").count(), 1, "{}", kirin.log());
    // The authority has changed its answer (RFC 9773).
    renew(&kirin, &site, &pebble);
}

/// Has the authority ask for another certificate of a.test, and waits until Kirin serves it.
pub fn renew(kirin: &Kirin, site: &Site, pebble: &Pebble) {
    let certificate = fs::read_to_string(kept(site, pebble).join("a.test.pem"));
    pebble.wants_renewal(&certificate.expect("a certificate"));
    kirin.signal(Signal::HUP);
    wait_for("the second certificate", || {
        (kirin.log().matches("serving a new certificate").count() == 2).then_some(())
    });
}

#[test]
fn listeners_of_the_same_names_share_a_certificate() {
    let (site, pebble) = (site(), Pebble::start());
    let one = config(&pebble, "\"a.test\"");
    let (before, after) = one.split_at(one.find("[[listener]]").expect("a listener"));
    let listener =
        &after[..after.find("[[listener]]\naddress = \"127.0.0.1:0\"\nredirect").expect("another")];
    let kirin = start(&site, &pebble, &[before, listener, after].concat());
    pebble.look_at(kirin.address_of(2));
    kirin.wait_for_log("serving a new certificate for a.test");
    let setup = TlsSetup::with_root(&pebble.root(), None, TLSv1_3);
    for number in 0..2 {
        TlsClient::connect(kirin.address_of(number), "a.test", &setup)
            .expect("a certificate that is trusted");
    }
    assert_eq!(kirin.log().matches("asking").count(), 1, "{}", kirin.log());
}

#[test]
fn a_certificate_that_lacks_a_name_is_served_until_there_is_one_with_it() {
    let (site, pebble) = (site(), Pebble::start());
    let old = Authority::new("The old one");
    keep(&site, &pebble, "a.test.pem", &old.issue(&["a.test"]));
    let kirin = start(&site, &pebble, &config(&pebble, "\"a.test\", \"b.test\""));
    connect(&kirin, "a.test", &old.pem()).expect("the old certificate");
    pebble.look_at(kirin.address_of(1));
    kirin.wait_for_log("serving a new certificate for a.test, b.test");
    connect(&kirin, "b.test", &pebble.root()).expect("the new certificate");
}

#[test]
fn a_refusal_is_logged_with_its_reason_and_everything_else_is_served() {
    let (site, pebble) = (site(), Pebble::start());
    let refused = start(&site, &pebble, &config(&pebble, "\"www.refused.test\""));
    refused.wait_for_log("next attempt in");
    let log = refused.log();
    for part in [
        "no certificate for www.refused.test",
        "is it spelt right",
        "handshakes are refused until then",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert_eq!(log.matches("asking").count(), 1, "{log}");
    assert!(connect(&refused, "www.refused.test", &pebble.root()).is_err());
    assert_eq!(Client::connect(refused.address_of(1)).get("/hello.txt").status, 308);
}

#[test]
fn a_name_that_leads_elsewhere_is_logged() {
    let (site, pebble) = (site(), Pebble::start());
    let elsewhere = Kirin::start_with(&site, &["serve", "www", "--listen", "0"]);
    pebble.look_at(elsewhere.address());
    let kirin = start(&site, &pebble, &config(&pebble, "\"a.test\""));
    kirin.wait_for_log("next attempt in");
    let log = kirin.log();
    // Both ways to prove the name were tried.
    for part in [
        "a.test: http-01: ",
        "404",
        "; trying tls-alpn-01",
        "no certificate for a.test",
        "a.test: tls-alpn-01: ",
        "the name must lead to this machine",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    // The file is repaired.
    pebble.look_at(kirin.address_of(1));
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("serving a new certificate for a.test");
    assert!(!kept(&site, &pebble).join("a.test.failures.json").exists());
}

#[test]
fn starting_again_after_many_failures_does_not_ask_at_once() {
    let (site, pebble) = (site(), Pebble::start());
    let config = config(&pebble, "\"www.refused.test\"");
    for _ in 0..3 {
        start(&site, &pebble, &config).wait_for_log("next attempt in");
    }
    let kirin = start(&site, &pebble, &config);
    kirin.wait_for_log("3 attempts to get a certificate for www.refused.test have failed");
    assert!(!kirin.log().contains("asking"), "{}", kirin.log());
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("asking");
}

#[test]
fn an_unreachable_authority_is_logged() {
    let (site, pebble) = (site(), Pebble::start());
    let config = config(&pebble, "\"a.test\"");
    let mut command = command(&site, &pebble);
    // Its directory goes with it.
    let authority = site.path("ca.pem");
    fs::copy(pebble.own_authority(), &authority).expect("a certificate");
    command.env("SSL_CERT_FILE", authority);
    drop(pebble);
    fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    let kirin = Kirin::start_command(command.arg("serve"));
    kirin.wait_for_log("next attempt in");
    let log = kirin.log();
    for part in
        ["Connection refused", "can this machine reach", "handshakes are refused until then"]
    {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn stored_certificates_belong_to_the_user_that_serves() {
    if !geteuid().is_root() {
        // Only root can become another user. tests/user.rs tests the message.
        return;
    }
    let (site, pebble) = (site(), Pebble::start());
    fs::set_permissions(site.root(), fs::Permissions::from_mode(0o755)).expect("a mode");
    // The state is that of a Kirin that served as root.
    let old = Authority::new("The old one");
    keep(&site, &pebble, "a.test.pem", &old.issue_for_days("a.test", 80, 10));
    let kirin =
        start(&site, &pebble, &format!("user = \"nobody\"\n{}", config(&pebble, "\"a.test\"")));
    pebble.look_at(kirin.address_of(1));
    kirin.wait_for_log("serving a new certificate for a.test");
    for name in ["", "a.test.pem", "account.json"] {
        let path = kept(&site, &pebble).join(name);
        assert_ne!(fs::metadata(&path).expect("a file").uid(), 0, "{}", path.display());
    }
}

#[test]
fn impossible_configurations_are_refused_at_once() {
    let site = site().with("a.pem", "");
    let whole = "[[listener]]\naddress = \"0\"\n[listener.tls]\nacme = { domains = [\"a.test\"] }\n\
        [[route]]\npath = \"/\"\ntry = [\"files:www\"]\n";
    let check = |text: &str| {
        fs::write(site.path("kirin.toml"), text).expect("kirin.toml");
        let output = run_kirin(&site, &["check"]);
        [output.stdout, output.stderr].concat()
    };
    let said = |text: &str| String::from_utf8_lossy(&check(text)).into_owned();
    assert_eq!(said(whole), "kirin.toml: good\n");
    for (from, to, expected) in [
        (
            "\"a.test\"",
            "\"*.a.test\"",
            "kirin.toml:4:21: `*.a.test` is not a name that ACME can prove",
        ),
        ("\"a.test\"", "", "1 to 100 names"),
        ("acme = { domains = [\"a.test\"] }\n", "", "TLS needs `certificates`"),
        ("\"a.test\"]", "\"a.test\"], directory = \"http://ca.test/\"", "is an https:// address"),
        ("\"a.test\"]", "\"a.test\"], email = \"me\"", "`me` is not an address"),
    ] {
        let said = said(&whole.replace(from, to));
        assert!(said.contains(expected), "{said}");
    }
    let issued = Authority::new("Own").issue(&["b.test"]);
    issued.write(&site, "b");
    let both = "certificates = [{ chain = \"b.pem\", key = \"b.key\" }]\nacme = {";
    let said = said(&whole.replace("acme = {", both));
    assert!(said.contains("either `certificates` or `acme`"), "{said}");
}

#[test]
fn the_printed_configuration_has_the_domains() {
    let site = site();
    let arguments = ["serve", "--print-config", "--domain", "a.test", "--domain", "b.test", "www"];
    let printed = String::from_utf8(run_kirin(&site, &arguments).stdout).expect("UTF-8");
    for part in
        ["\"*:443\"", "\"*:80\"", "domains = [\"a.test\", \"b.test\"]", "redirect_to_https = 443"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    fs::write(site.path("kirin.toml"), printed).expect("kirin.toml");
    let output = run_kirin(&site, &["check"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_kirin_waits_for_another_with_the_same_directory_and_uses_its_result() {
    let (site, pebble) = (site(), Pebble::start());
    // This test is the other Kirin.
    let directory = kept(&site, &pebble);
    fs::create_dir_all(&directory).expect("a directory");
    let lock = fs::File::create(directory.join("lock")).expect("the lock file");
    lock.lock().expect("a lock");
    let kirin = start(&site, &pebble, &config(&pebble, "\"a.test\""));
    kirin.wait_for_log("another Kirin asks");
    let authority = Authority::new("The other Kirin's");
    keep(&site, &pebble, "a.test.pem", &authority.issue_for_days("a.test", 0, 90));
    drop(lock);
    kirin.wait_for_log("serving a certificate that another Kirin got for a.test");
    connect(&kirin, "a.test", &authority.pem()).expect("the certificate");
    assert!(!kirin.log().contains("asking"), "{}", kirin.log());
}
