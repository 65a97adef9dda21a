//! The challenge tls-alpn-01 (RFC 8737): an authority proves a name by a TLS handshake.

use std::fs;
use std::io::ErrorKind;

use kirin_tests::{
    Authority, Client, Kirin, Pebble, PebbleSetup, Site, TlsClient, TlsSetup, wait_for,
};
use rustix::process::Signal;
use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};

use crate::acme::{connect, keep, kept, renew, start};

/// The content of the extension `acmeIdentifier` in DER, up to the digest: the object id
/// 1.3.6.1.5.5.7.1.31, TRUE for critical, and an OCTET STRING of 34 bytes around one of 32.
const ACME_IDENTIFIER: &[u8] = &[6, 8, 43, 6, 1, 5, 5, 7, 1, 31, 1, 1, 255, 4, 34, 4, 32];

fn pebble() -> Pebble {
    Pebble::start_with(&PebbleSetup { looks_at_tls: true, ..<_>::default() })
}

fn site() -> Site {
    Site::new().with("www/hello.txt", "hello\n")
}

/// Returns a configuration whose only listener has TLS.
fn only_tls(pebble: &Pebble, domains: &str) -> String {
    let url = pebble.url();
    format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\nacme = {{ domains = [{domains}], directory = \
         \"{url}\" }}\n[[route]]\npath = \"/\"\ntry = [\"files:www\"]\n"
    )
}

/// Adds a listener without TLS.
fn with_plain(config: &str) -> String {
    config.replace("[[route]]", "[[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]")
}

/// Waits until an order needs a proof of `name`. The authority has not asked yet. Returns the
/// authority's side of the handshake.
fn wait_for_proof(kirin: &Kirin, name: &str) -> TlsClient {
    wait_for("a certificate of the challenge", || {
        TlsClient::connect(kirin.address(), name, &TlsSetup::of_authority()).ok()
    })
}

#[test]
fn a_tls_listener_is_enough_for_a_certificate() {
    let (site, pebble) = (site(), pebble());
    let kirin = start(&site, &pebble, &only_tls(&pebble, "\"a.test\", \"b.test\""));
    pebble.look_at_tls(kirin.address());
    kirin.wait_for_log("serving a new certificate for a.test, b.test");
    let root = pebble.root();
    for name in ["a.test", "b.test"] {
        let reply =
            connect(&kirin, name, &root).expect("it is trusted").get_and_close("/hello.txt");
        assert!(reply.ends_with("hello\n"), "{reply}");
    }
    // The order is over, and with it the proof.
    let error = TlsClient::connect(kirin.address(), "a.test", &TlsSetup::of_authority());
    let error = error.err().expect("it is refused").to_string();
    assert!(error.contains("NoApplicationProtocol"), "{error}");
    // A renewal is proven in the same way.
    renew(&kirin, &site, &pebble);
}

#[test]
fn only_an_authority_sees_the_certificate_of_a_challenge() {
    let (site, pebble) = (site(), pebble());
    // Kirin serves it and requests another one at once.
    let old = Authority::new("The old one");
    keep(&site, &pebble, "a.test.pem", &old.issue_for_days("a.test", 80, 10));
    let kirin = start(&site, &pebble, &only_tls(&pebble, "\"a.test\""));

    let mut asked = wait_for_proof(&kirin, "a.test");
    let certificate = asked.server_certificate();
    let is_proof = certificate.windows(ACME_IDENTIFIER.len()).any(|part| part == ACME_IDENTIFIER);
    assert!(is_proof, "{certificate:?}");
    // There is no HTTP behind the handshake, only its end.
    asked.send("GET /hello.txt HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let (received, result) = asked.read_to_end();
    assert!(received.is_empty() && result.is_ok(), "{received:?} {result:?}");
    let again = TlsClient::connect(kirin.address(), "A.Test", &TlsSetup::of_authority());
    assert!(!again.expect("the certificate").is_resumed());

    // Names without an order are refused.
    for name in ["b.test", "www.a.test", "127.0.0.1"] {
        let refused = TlsClient::connect(kirin.address(), name, &TlsSetup::of_authority());
        let error = refused.err().expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}: {error}");
        assert!(error.to_string().contains("NoApplicationProtocol"), "{name}: {error}");
    }
    // Clients get the certificate that is served, whatever else they offer.
    for version in [TLSv1_2, TLSv1_3] {
        let setup = TlsSetup::new(&old, None, version);
        for protocols in
            [&["http/1.1"][..], &[], &["acme-tls/1", "http/1.1"], &["http/1.1", "acme-tls/1"]]
        {
            let setup = setup.with_protocols(protocols);
            let client = TlsClient::connect(kirin.address(), "a.test", &setup);
            let reply = client.expect("the old certificate").get_and_close("/hello.txt");
            assert!(reply.ends_with("hello\n"), "{protocols:?}: {reply}");
        }
    }
    pebble.look_at_tls(kirin.address());
    kirin.wait_for_log("serving a new certificate for a.test");
}

#[test]
fn a_port_80_that_leads_elsewhere_does_not_prevent_a_certificate() {
    let (site, pebble) = (site(), pebble());
    let elsewhere = Kirin::start_with(&site, &["serve", "www", "--listen", "0"]);
    pebble.look_at(elsewhere.address());
    let config = with_plain(&only_tls(&pebble, "\"a.test\""));
    let kirin = start(&site, &pebble, &config);
    pebble.look_at_tls(kirin.address());
    kirin.wait_for_log("serving a new certificate for a.test");
    let log = kirin.log();
    for part in ["a.test: http-01: ", "port 80 of it", "; trying tls-alpn-01"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert_eq!(Client::connect(kirin.address_of(1)).get("/hello.txt").status, 200);
    assert!(!kept(&site, &pebble).join("a.test.failures.json").exists());
}

#[test]
fn a_port_443_that_leads_elsewhere_is_logged() {
    let (site, pebble) = (site(), pebble());
    // Somebody else's TLS.
    Authority::new("Elsewhere").issue(&["a.test"]).write(&site, "other");
    let other = "[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\ncertificates = \
                 [{ chain = \"other.pem\", key = \"other.key\" }]\n[[route]]\npath = \"/\"\n\
                 try = [\"files:www\"]\n";
    fs::write(site.path("other.toml"), other).expect("other.toml");
    let elsewhere = Kirin::start_with(&site, &["serve", "--config", "other.toml"]);
    let kirin = start(&site, &pebble, &only_tls(&pebble, "\"a.test\""));
    pebble.look_at_tls(elsewhere.address());
    kirin.wait_for_log("next attempt in");
    let log = kirin.log();
    for part in ["no certificate for a.test", "a.test: tls-alpn-01: ", "port 443 of it"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    pebble.look_at_tls(kirin.address());
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("serving a new certificate for a.test");
}
