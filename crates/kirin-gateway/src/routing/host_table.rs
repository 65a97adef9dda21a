//! Finds the site of a request by its host. Pure; made when the configuration is checked, and
//! shared by all loops.

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv6Addr;

use foldhash::fast::RandomState;
use kirin_http::host::canonical_host;

/// The longest name of a site in the store, in bytes. It leaves room for the names in the site.
pub const NAME_LIMIT_BYTES: usize = 128;

/// The hosts of all sites.
#[derive(Debug, Default)]
pub struct HostTable {
    exact: HashMap<String, usize, RandomState>,
    /// Wildcards by what follows the `*.`.
    wildcards: HashMap<String, usize, RandomState>,
    /// The site of all other hosts.
    default: Option<usize>,
}

/// A host of a site, as it is written in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SiteHost {
    /// Every host that no other site has: `*`.
    Any,
    /// One host, canonical.
    Exact(String),
    /// All hosts below a name, canonical: `*.example.org` without the `*.`.
    Below(String),
}

/// The site that a host has been found to belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSite {
    /// The index of the site.
    pub site: usize,
    /// Whether a wildcard has matched, so that the site may have more hosts than it names.
    pub by_wildcard: bool,
}

/// The host as the configuration has it, but canonical.
impl fmt::Display for SiteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SiteHost::Any => f.write_str("*"),
            SiteHost::Exact(host) => f.write_str(host),
            SiteHost::Below(parent) => write!(f, "*.{parent}"),
        }
    }
}

impl SiteHost {
    /// Reads a host of the configuration. An error is a message for the user.
    pub fn read(text: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            Err(format!(
                "`{text}` is not a host: {why}; allowed are names such as example.org, wildcards \
                 such as *.example.org, addresses, and `*` for every other host"
            ))
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, is_wildcard) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if name.contains("://") || name.contains('/') {
            return bad("it has a scheme or a path");
        }
        if name.parse::<Ipv6Addr>().is_ok() {
            return bad("an address of IPv6 is written in brackets, such as [::1]");
        }
        let is_ip6 = name.starts_with('[') && name.ends_with(']');
        if !is_ip6 && name.contains(':') {
            return bad("sites answer on all ports of their listeners, so leave out the port");
        }
        if name.contains('*') {
            return bad("a `*` stands for the first label only");
        }
        let host = canonical_host(name).into_owned();
        if is_ip6 && !is_wildcard {
            let address = host.trim_matches(['[', ']']).parse::<Ipv6Addr>();
            return if address.is_ok() { Ok(Self::Exact(host)) } else { bad("not an address") };
        }
        if host.is_empty() || host.len() > 253 || !host.split('.').all(is_label) {
            return bad("its labels have 1 to 63 letters, digits, `-` and `_`");
        }
        Ok(if is_wildcard { Self::Below(host) } else { Self::Exact(host) })
    }
}

impl HostTable {
    /// Adds a host of a site. Returns whether no other site has it.
    pub fn add(&mut self, host: SiteHost, site: usize) -> bool {
        let before = match host {
            SiteHost::Any => self.default.replace(site),
            SiteHost::Exact(host) => self.exact.insert(host, site),
            SiteHost::Below(host) => self.wildcards.insert(host, site),
        };
        before.is_none()
    }

    /// Returns whether all hosts belong to one site, so that a request needs no look at its host.
    pub fn is_single(&self) -> bool {
        self.exact.is_empty() && self.wildcards.is_empty()
    }

    /// Returns the site of a canonical host: that with this name, or else that with the longest
    /// wildcard, or else that of all other hosts.
    pub fn find(&self, host: &str) -> Option<FoundSite> {
        if let Some(site) = self.exact.get(host) {
            return Some(FoundSite { site: *site, by_wildcard: false });
        }
        if !self.wildcards.is_empty()
            && let Some((_, site)) = self.wildcard(host)
        {
            return Some(FoundSite { site, by_wildcard: true });
        }
        self.default.map(|site| FoundSite { site, by_wildcard: false })
    }

    /// Returns the entry of the configuration by which [`HostTable::find`] finds the site of a
    /// canonical host.
    pub fn entry(&self, host: &str) -> Option<SiteHost> {
        if self.exact.contains_key(host) {
            return Some(SiteHost::Exact(host.to_owned()));
        }
        match self.wildcard(host) {
            Some((parent, _)) => Some(SiteHost::Below(parent.to_owned())),
            None => self.default.map(|_| SiteHost::Any),
        }
    }

    /// Returns the wildcard of a site that is the first in alphabetical order, with its `*.`.
    pub fn first_wildcard(&self, site: usize) -> Option<String> {
        let of_site = self.wildcards.iter().filter(|(_, known)| **known == site);
        of_site.map(|(parent, _)| format!("*.{parent}")).min()
    }

    /// Returns the longest wildcard without its `*.`, and its site. The host becomes a part of
    /// keys, so it may only have the characters of a name, and not be too long.
    fn wildcard<'a>(&self, host: &'a str) -> Option<(&'a str, usize)> {
        if host.len() > NAME_LIMIT_BYTES || !host.split('.').all(is_label) {
            return None;
        }
        let mut rest = host;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(site) = self.wildcards.get(parent) {
                return Some((parent, *site));
            }
            rest = parent;
        }
        None
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        })
}

#[cfg(test)]
mod tests {
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
            ("*.Org.", below("org")),
            ("", Err("labels")),
            (".", Err("labels")),
            ("*.", Err("labels")),
            ("*.*", Err("first label only")),
            ("**", Err("first label only")),
            ("a.*.org", Err("first label only")),
            ("www*.org", Err("first label only")),
            ("*.[::1]", Err("labels")),
            ("*example.org", Err("first label only")),
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
        let mut table = table(&["example.org", "*.example.org", "*"]);
        for host in ["EXAMPLE.org.", "*.Example.org", "*"] {
            assert!(!table.add(SiteHost::read(host).unwrap(), 7), "{host}");
        }
        assert!(table.add(SiteHost::read("www.example.org").unwrap(), 7));
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
                host.strip_suffix(&format!(".{name}")).and(Some(name.len() + 1))
            }
            SiteHost::Any => Some(0),
        };
        let ranked = hosts.iter().enumerate().filter_map(|(site, of)| Some((rank(of)?, site)));
        let (_, site) = ranked.max_by_key(|(rank, _)| *rank)?;
        Some(FoundSite { site, by_wildcard: matches!(hosts[site], SiteHost::Below(_)) })
    }

    proptest! {
        #[test]
        fn a_host_has_the_site_that_the_rules_give_it(
            hosts in prop::collection::btree_set("([*]|([*][.])?[ab]([.][ab]){0,3})", 0..12),
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
}
