//! Tests of the client address that proxies report.

use ipnet::IpNet;
use proptest::prelude::*;

use super::*;

fn trusting(networks: &[&str]) -> Forwarding {
    let networks = networks.iter().map(|network| network.parse::<IpNet>().unwrap());
    Forwarding { trusted: PeerSet::new(networks, false), ..Forwarding::default() }
}

fn peer(ip: &str) -> Peer {
    Peer::Tcp(SocketAddr::new(ip.parse().unwrap(), 1))
}

/// Returns the client as `ADDRESS SCHEME HOST`, with `-` for the parts that are not named.
fn told(forwarding: &Forwarding, from: &str, lines: &[(&str, &str)]) -> String {
    let fields: Vec<_> =
        lines.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect();
    let Some(client) = forwarding.client(&peer(from), &fields) else { return "-".into() };
    let Peer::Tcp(address) = client.peer else { panic!("{client:?}") };
    let address = if address.port() == 0 { address.ip().to_string() } else { address.to_string() };
    let scheme = client.secure.map_or("-", |secure| if secure { "https" } else { "http" });
    format!("{address} {scheme} {}", client.host.unwrap_or("-"))
}

const XFF: &str = "X-Forwarded-For";
const XFP: &str = "X-Forwarded-Proto";
const XFH: &str = "X-Forwarded-Host";

#[test]
fn the_client_is_the_first_from_the_right_that_is_no_trusted_proxy() {
    let forwarding = trusting(&["10.0.0.0/8", "2001:db8:1::/48"]);
    for (from, value, expected) in [
        ("10.0.0.1", "192.0.2.1", "192.0.2.1 - -"),
        ("10.0.0.1", "6.6.6.6, 192.0.2.1", "192.0.2.1 - -"),
        ("10.0.0.1", "6.6.6.6, 192.0.2.1, 10.0.0.2,10.0.0.3", "192.0.2.1 - -"),
        ("10.0.0.1", "10.6.6.6, 192.0.2.1, 10.0.0.2", "192.0.2.1 - -"),
        // All proxies are trusted: the farthest one counts.
        ("10.0.0.1", "10.0.0.9, 10.0.0.2", "10.0.0.9 - -"),
        // Entries to the left of an unknown one come from an unknown party.
        ("10.0.0.1", "192.0.2.1, unknown, 10.0.0.2", "10.0.0.2 - -"),
        ("10.0.0.1", "192.0.2.1, unknown", "-"),
        ("10.0.0.1", "", "-"),
        ("10.0.0.1", ", ,", "-"),
        ("10.0.0.1", "192.0.2.1:4711", "192.0.2.1:4711 - -"),
        ("10.0.0.1", "2001:db8::1", "2001:db8::1 - -"),
        ("10.0.0.1", "[2001:db8::1]", "2001:db8::1 - -"),
        ("10.0.0.1", "2001:db8::1, [2001:db8:1::5]:80", "2001:db8::1 - -"),
        ("10.0.0.1", "::ffff:192.0.2.1", "192.0.2.1 - -"),
        ("::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1 - -"),
        ("2001:db8:1::1", "192.0.2.1", "192.0.2.1 - -"),
        // The peer is not a proxy.
        ("192.0.2.9", "6.6.6.6", "-"),
        ("2001:db8:2::1", "6.6.6.6", "-"),
    ] {
        assert_eq!(told(&forwarding, from, &[(XFF, value)]), expected, "{from}: {value}");
    }
    let lines = [
        (XFF, "6.6.6.6"),
        ("X", "y"),
        ("x-forwarded-for", "192.0.2.1, 10.0.0.3"),
        (XFF, "10.0.0.2"),
    ];
    assert_eq!(told(&forwarding, "10.0.0.1", &lines), "192.0.2.1 - -");
}

#[test]
fn the_scheme_is_that_of_the_clients_own_hop() {
    let forwarding = trusting(&["10.0.0.0/8"]);
    for (hops, schemes, expected) in [
        ("192.0.2.1", "https", "192.0.2.1 https -"),
        ("192.0.2.1", "HTTP", "192.0.2.1 http -"),
        ("192.0.2.1", "gopher", "192.0.2.1 - -"),
        // The field has one value for each hop. The client made up its own.
        ("6.6.6.6, 192.0.2.1, 10.0.0.2", "http, https, http", "192.0.2.1 https -"),
        // The field has fewer values than hops: that of the nearest proxy counts.
        ("192.0.2.1, 10.0.0.2", "http", "192.0.2.1 http -"),
        ("192.0.2.1", "https, http", "192.0.2.1 http -"),
        ("", "https", "10.0.0.1:1 https -"),
    ] {
        assert_eq!(
            told(&forwarding, "10.0.0.1", &[(XFF, hops), (XFP, schemes)]),
            expected,
            "{hops} {schemes}"
        );
    }
    assert_eq!(told(&forwarding, "192.0.2.1", &[(XFP, "https")]), "-");
}

#[test]
fn the_host_is_taken_only_if_the_configuration_says_so() {
    let mut forwarding = trusting(&["10.0.0.0/8"]);
    let lines = [(XFF, "192.0.2.1"), (XFH, "shop.example:8443")];
    assert_eq!(told(&forwarding, "10.0.0.1", &lines), "192.0.2.1 - -");
    forwarding.host = true;
    assert_eq!(told(&forwarding, "10.0.0.1", &lines), "192.0.2.1 - shop.example:8443");
    assert_eq!(told(&forwarding, "192.0.2.9", &lines), "-");
    assert_eq!(told(&forwarding, "10.0.0.1", &[(XFH, "no host!/")]), "-");
    forwarding.fields = ForwardedFields::Forwarded;
    let lines = [("Forwarded", "for=192.0.2.1;host=\"shop.example\"")];
    assert_eq!(told(&forwarding, "10.0.0.1", &lines), "192.0.2.1 - shop.example");
}

#[test]
fn forwarded_is_walked_in_the_same_way() {
    let mut forwarding = trusting(&["10.0.0.0/8"]);
    forwarding.fields = ForwardedFields::Forwarded;
    for (value, expected) in [
        ("for=192.0.2.1;proto=https", "192.0.2.1 https -"),
        (
            "for=6.6.6.6;proto=https, for=192.0.2.1;proto=http, for=10.0.0.2;proto=https",
            "192.0.2.1 http -",
        ),
        ("for=\"[2001:db8::1]:4711\"", "[2001:db8::1]:4711 - -"),
        ("for=192.0.2.1, for=_hidden, for=10.0.0.2", "10.0.0.2 - -"),
        ("for=192.0.2.1, proto=https", "-"),
        ("for=unknown", "-"),
        // A client that leaves a quotation mark open hides what the proxy adds, and gains nothing.
        ("for=\"6.6.6.6, for=192.0.2.1", "-"),
    ] {
        assert_eq!(told(&forwarding, "10.0.0.1", &[("Forwarded", value)]), expected, "{value}");
    }
    assert_eq!(
        told(
            &forwarding,
            "10.0.0.1",
            &[("Forwarded", "for=\"6.6.6.6"), ("Forwarded", "for=192.0.2.1")]
        ),
        "192.0.2.1 - -"
    );
    assert_eq!(
        told(&forwarding, "10.0.0.1", &[(XFF, "6.6.6.6")]),
        "-",
        "the other field is anybody's"
    );
    assert_eq!(told(&trusting(&["10.0.0.0/8"]), "10.0.0.1", &[("Forwarded", "for=6.6.6.6")]), "-");
}

#[test]
fn a_unix_socket_is_trusted_only_by_name() {
    let fields = [Header { name: XFF, value: b"192.0.2.1" }];
    let mut forwarding = trusting(&["0.0.0.0/0", "::/0"]);
    assert_eq!(forwarding.client(&Peer::Unix, &fields), None);
    forwarding.trusted = PeerSet::new([], true);
    assert!(forwarding.client(&Peer::Unix, &fields).is_some());
}

proptest! {
    #[test]
    fn a_client_cannot_change_the_element_that_the_proxy_adds(made_up in "[ -~]{0,60}") {
        // A proxy adds the address of its client behind everything that the client sent.
        let forwarding = trusting(&["10.0.0.0/8"]);
        let line = format!("{made_up}, 192.0.2.1");
        prop_assert_eq!(told(&forwarding, "10.0.0.1", &[(XFF, &line)]), "192.0.2.1 - -");
        let mut forwarding = forwarding;
        forwarding.fields = ForwardedFields::Forwarded;
        let line = format!("{made_up}, for=192.0.2.1");
        let got = told(&forwarding, "10.0.0.1", &[("Forwarded", &line)]);
        prop_assert!(got == "192.0.2.1 - -" || got == "-", "{}: {}", line, got);
    }
}

#[test]
fn a_field_with_one_address_names_the_client() {
    let mut forwarding = trusting(&["10.0.0.0/8"]);
    forwarding.fields = ForwardedFields::Address("X-Real-IP".into());
    const REAL: &str = "x-real-ip";
    for (from, lines, expected) in [
        ("10.0.0.1", &[(REAL, "192.0.2.1")][..], "192.0.2.1 - -"),
        ("10.0.0.1", &[(REAL, " [2001:db8::1]:80 ")], "[2001:db8::1]:80 - -"),
        ("10.0.0.1", &[(REAL, "10.0.0.2")], "10.0.0.2 - -"),
        ("10.0.0.1", &[(REAL, "192.0.2.1"), (XFF, "6.6.6.6")], "192.0.2.1 - -"),
        ("10.0.0.1", &[(REAL, "192.0.2.1"), (XFP, "http, https")], "192.0.2.1 https -"),
        ("10.0.0.1", &[(XFP, "https"), (XFH, "a.test")], "10.0.0.1:1 https -"),
        // It is not known which address the proxy has written.
        ("10.0.0.1", &[(REAL, "6.6.6.6, 192.0.2.1")], "-"),
        ("10.0.0.1", &[(REAL, "6.6.6.6"), (REAL, "192.0.2.1")], "-"),
        ("10.0.0.1", &[(REAL, "unknown")], "-"),
        ("10.0.0.1", &[(REAL, "")], "-"),
        ("10.0.0.1", &[(XFF, "6.6.6.6"), ("Forwarded", "for=6.6.6.6")], "-"),
        ("192.0.2.9", &[(REAL, "6.6.6.6"), (XFP, "https")], "-"),
    ] {
        assert_eq!(told(&forwarding, from, lines), expected, "{from}: {lines:?}");
    }
    forwarding.host = true;
    let lines = [(REAL, "192.0.2.1"), (XFH, "evil.test, a.test")];
    assert_eq!(told(&forwarding, "10.0.0.1", &lines), "192.0.2.1 - a.test");
}
