//! Pages that applications store for the client certificate of a visitor.

use kirin_tests::{Authority, Client, Issued, Kirin, Memcached, Site, TlsClient, TlsSetup};
use rustls::ProtocolVersion::TLSv1_3;

/// Two listeners with their own authorities for clients, and one without TLS.
const CERTIFICATES: &str = r#"
threads = 1
[[listener]]
address = "127.0.0.1:0"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
client_ca = "clients.pem"
client_verify = "required"
[[listener]]
address = "127.0.0.1:0"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
client_ca = "others.pem"
client_verify = "optional"
[[listener]]
address = "127.0.0.1:0"
[store]
memory = "16MB"
memcached = ["unix:m.sock"]
[[app]]
name = "web"
load = "app.psgi"
workers = 1
[[route]]
path = "/"
try = ["store", "app:web"]
"#;

const CERTIFICATE_APP: &str = r#"
use v5.16; use warnings;
my $run = 0;
sub {
    my $env = shift;
    my $client = $env->{SSL_CLIENT_S_DN} // 'nobody';
    $run++;
    return [200, ['Content-Type' => 'text/plain', 'Kirin-Store' => 'ttl=300'], ["$run for $client"]];
};
"#;

#[test]
fn a_page_stored_for_a_certificate_is_served_for_one_of_the_same_authority() {
    let [authority, clients, others] = ["Server", "Clients", "Others"].map(Authority::new);
    let site = Site::new()
        .with("app.psgi", CERTIFICATE_APP)
        .with("clients.pem", clients.pem())
        .with("others.pem", others.pem());
    authority.issue(&["a.test"]).write(&site, "a");
    let kirin = Kirin::start(&site, CERTIFICATES);
    let get = |listener: usize, certificate: Option<&Issued>| {
        let setup = TlsSetup::new(&authority, certificate, TLSv1_3);
        let mut client =
            TlsClient::connect(kirin.address_of(listener), "a.test", &setup).expect("a handshake");
        let reply = client.get_and_close("/");
        reply.split_once("\r\n\r\n").expect("a body").1.to_owned()
    };
    let (alice, bob, eve) =
        (clients.issue(&["alice"]), clients.issue(&["bob"]), others.issue(&["eve"]));
    assert_eq!(get(0, Some(&alice)), "1 for CN=alice,O=Kirin\\, tests");
    assert_eq!(
        get(0, Some(&bob)),
        "1 for CN=alice,O=Kirin\\, tests",
        "one for all of this authority"
    );
    assert_eq!(get(1, Some(&eve)), "2 for CN=eve,O=Kirin\\, tests");
    assert_eq!(get(0, Some(&bob)), "3 for CN=bob,O=Kirin\\, tests");
    assert_eq!(get(1, None), "4 for nobody");
    // Now the page in the store is for all visitors.
    for (listener, certificate) in [(0, Some(&alice)), (1, Some(&eve)), (1, None)] {
        assert_eq!(get(listener, certificate), "4 for nobody");
    }
    let mut client = Client::connect(kirin.address_of(2));
    assert_eq!(client.get("/").text(), "4 for nobody");
    Memcached::connect(&site.path("m.sock")).delete("/");
    assert!(get(0, Some(&alice)).starts_with("5 for CN=alice"));
    assert_eq!(client.get("/").text(), "6 for nobody", "a listener without certificates");
}
