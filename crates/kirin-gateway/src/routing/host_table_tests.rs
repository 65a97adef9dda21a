//! Tests of the hosts of sites.

use proptest::prelude::*;

use super::*;

fn table(hosts: &[&str]) -> HostTable {
    let mut table = HostTable::default();
    for (site, host) in hosts.iter().enumerate() {
        assert!(table.add(SiteHost::read(host).unwrap(), site), "{host}");
    }
    table
}

#[test]
fn hosts_of_a_configuration_are_read_or_refused() {
    let exact = |host: &str| Ok(SiteHost::Exact(host.to_owned()));
    let below = |host: &str| Ok(SiteHost::Below(host.to_owned()));
    let starts = |host: &str| Ok(SiteHost::StartsWith(host.to_owned()));
    for (text, expected) in [
        ("*", Ok(SiteHost::Any)),
        ("example.org", exact("example.org")),
        ("Example.ORG.", exact("example.org")),
        ("localhost", exact("localhost")),
        ("a_b.example.org", exact("a_b.example.org")),
        ("M\u{fc}nchen.de", exact("xn--mnchen-3ya.de")),
        ("xn--mnchen-3ya.de", exact("xn--mnchen-3ya.de")),
        ("*.M\u{fc}nchen.de", below("xn--mnchen-3ya.de")),
        ("127.0.0.1", exact("127.0.0.1")),
        ("[::1]", exact("[::1]")),
        ("[0:0::1]", exact("[::1]")),
        ("*.example.org", below("example.org")),
        ("Example.*", starts("example")),
        ("www.M\u{fc}nchen.*", starts("www.xn--mnchen-3ya")),
        ("*.example.*", Err("at the start or at the end")),
        ("example.**", Err("at the start or at the end")),
        ("example*", Err("at the start or at the end")),
        (".*", Err("labels")),
        ("a..*", Err("labels")),
        ("[::1].*", Err("labels")),
        ("~^www\\d+$", Ok(SiteHost::Matches(HostExpression::compile("^www\\d+$").unwrap()))),
        ("~(", Err("the regular expression is wrong: unclosed group")),
        ("*.Org.", below("org")),
        ("", Err("labels")),
        (".", Err("labels")),
        ("*.", Err("labels")),
        ("*.*", Err("at the start or at the end")),
        ("**", Err("at the start or at the end")),
        ("a.*.org", Err("at the start or at the end")),
        ("www*.org", Err("at the start or at the end")),
        ("*.[::1]", Err("labels")),
        ("*example.org", Err("at the start or at the end")),
        (".example.org", Err("labels")),
        ("a..org", Err("labels")),
        ("example.org:80", Err("leave out the port")),
        ("::1", Err("in brackets")),
        ("[::1]:80", Err("leave out the port")),
        ("[1]", Err("not an address")),
        ("https://example.org", Err("scheme or a path")),
        ("example.org/", Err("scheme or a path")),
        ("a b.org", Err("labels")),
        ("a,b.org", Err("labels")),
        ("a%20b.org", Err("labels")),
        ("a%3Ab.org", Err("labels")),
        ("a\u{ff1a}b.org", Err("labels")),
        ("user@a.org", Err("labels")),
    ] {
        match (SiteHost::read(text), expected) {
            (Ok(host), Ok(expected)) => assert_eq!(host, expected, "{text}"),
            (Err(message), Err(part)) => {
                assert!(message.contains(part) && message.contains(text), "{text}: {message}");
            }
            (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
        }
    }
    let label = "x".repeat(63);
    assert!(SiteHost::read(&format!("{label}.org")).is_ok());
    assert!(SiteHost::read(&format!("x{label}.org")).is_err());
    assert!(SiteHost::read(&[&*label; 4].join(".")).is_err(), "255 bytes");
}

#[test]
fn a_second_site_cannot_have_the_same_host() {
    let mut table = table(&["example.org", "*.example.org", "example.*", "~^a", "*"]);
    for host in ["EXAMPLE.org.", "*.Example.org", "EXAMPLE.*", "~^a", "*"] {
        assert!(!table.add(SiteHost::read(host).unwrap(), 7), "{host}");
    }
    assert!(table.add(SiteHost::read("www.example.org").unwrap(), 7));
}

#[test]
fn names_come_before_wildcards_and_these_before_regular_expressions() {
    let hosts = [
        "www.example.org",
        "*.example.org",
        "www.*",
        "www.example.*",
        "~^www",
        "~example",
        "~^www2",
        "*",
    ];
    let table = table(&hosts);
    for (host, expected) in [
        ("www.example.org", "www.example.org"),
        ("api.example.org", "*.example.org"),
        ("www.a.example.org", "*.example.org"),
        ("www.example.com", "www.example.*"),
        ("www.example.co.uk", "www.example.*"),
        ("www.other.com", "www.*"),
        ("www", "~^www"),
        ("www2.test", "~^www"),
        ("example.com", "~example"),
        ("other.com", "*"),
        ("a/example", "*"),
        ("example..com", "*"),
    ] {
        let entry = table.entry(host).map(|entry| entry.to_string());
        assert_eq!(entry.as_deref(), Some(expected), "{host}");
        let found = table.find(host).unwrap();
        assert_eq!(hosts[found.site], expected, "{host}");
        assert_eq!(found.by_wildcard, expected == "*.example.org", "{host}");
    }
}

#[test]
fn a_wildcard_takes_no_host_that_could_not_stand_in_a_key() {
    let table = table(&["*.example.org", "*.org"]);
    let long = ["x".repeat(63), "y".repeat(52), "example.org".to_owned()].join(".");
    assert_eq!(long.len(), NAME_LIMIT_BYTES);
    for (host, expected) in [
        ("a.example.org", Some(0)),
        ("b.a.example.org", Some(0)),
        ("example.org", Some(1)),
        ("org", None),
        ("", None),
        (".", None),
        (".example.org", None),
        ("a..example.org", None),
        ("a:.example.org", None),
        ("a/.example.org", None),
        ("a .example.org", None),
        ("A.example.org", None),
        ("a\0.example.org", None),
        ("\u{fc}.example.org", None),
        ("a.example.org.", None),
        ("a.example.orgx", None),
        ("aexample.org", Some(1)),
        ("[::1]", None),
        (&long, Some(0)),
        (&format!("z{long}"), None),
    ] {
        assert_eq!(table.find(host).map(|found| found.site), expected, "{host}");
    }
}

/// Returns the site of a host: every host of the configuration is compared.
fn find_by_rules(hosts: &[SiteHost], host: &str) -> Option<FoundSite> {
    let rank = |site: &SiteHost| match site {
        SiteHost::Exact(name) => (name == host).then_some(usize::MAX),
        SiteHost::Below(name) => {
            host.strip_suffix(&format!(".{name}")).and(Some(1000 + name.len()))
        }
        SiteHost::StartsWith(name) => {
            host.strip_prefix(&format!("{name}.")).and(Some(1 + name.len()))
        }
        SiteHost::Matches(_) | SiteHost::Any => Some(0),
    };
    let ranked = hosts.iter().enumerate().filter_map(|(site, of)| Some((rank(of)?, site)));
    let (_, site) = ranked.max_by_key(|(rank, _)| *rank)?;
    Some(FoundSite { site, by_wildcard: matches!(hosts[site], SiteHost::Below(_)) })
}

proptest! {
    #[test]
    fn a_host_has_the_site_that_the_rules_give_it(
        hosts in prop::collection::btree_set("([*]|([*][.])?[ab]([.][ab]){0,3}|[ab]([.][ab]){0,3}[.][*])", 0..12),
        host in "[ab]([.][ab]){0,5}",
    ) {
        let hosts: Vec<SiteHost> =
            hosts.iter().map(|host| SiteHost::read(host).unwrap()).collect();
        let mut table = HostTable::default();
        for (site, host) in hosts.iter().enumerate() {
            prop_assert!(table.add(host.clone(), site));
        }
        let found = table.find(&host);
        prop_assert_eq!(found, find_by_rules(&hosts, &host));
        let entry = table.entry(&host);
        let entry = entry.and_then(|entry| hosts.iter().position(|host| *host == entry));
        prop_assert_eq!(entry, found.map(|found| found.site));
        let is_single = hosts.iter().all(|host| *host == SiteHost::Any);
        prop_assert_eq!(table.is_single(), is_single);
    }
}
