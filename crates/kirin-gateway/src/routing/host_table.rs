//! Finds the site of a request by its host. Pure; made when the configuration is checked, and
//! shared by all loops.

use std::collections::HashMap;

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
        let is_ip6 = name.starts_with('[') && name.ends_with(']');
        if !is_ip6 && name.contains(':') {
            return bad("sites answer on all ports of their listeners, so leave out the port");
        }
        if name.contains('*') {
            return bad("a `*` stands for the first label only");
        }
        let host = canonical_host(name).into_owned();
        if is_ip6 && !is_wildcard {
            let address = host.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>();
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
            && let Some(site) = self.wildcard(host)
        {
            return Some(FoundSite { site, by_wildcard: true });
        }
        self.default.map(|site| FoundSite { site, by_wildcard: false })
    }

    /// Returns the site with the longest wildcard. The host becomes a part of keys, so it may only
    /// have the characters of a name, and not be too long.
    fn wildcard(&self, host: &str) -> Option<usize> {
        if host.len() > NAME_LIMIT_BYTES || !host.split('.').all(is_label) {
            return None;
        }
        let mut rest = host;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(site) = self.wildcards.get(parent) {
                return Some(*site);
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
