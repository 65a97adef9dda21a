//! Finds the site of a request by its host. Pure; made when the configuration is checked, and
//! shared by all loops.

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv6Addr;

use foldhash::fast::RandomState;
use kirin_http::host::canonical_host;

use super::host_expression::HostExpression;

/// The longest name of a site in the store, in bytes. It leaves room for the names in the site.
pub const NAME_LIMIT_BYTES: usize = 128;

/// The hosts of all sites.
#[derive(Debug, Default)]
pub struct HostTable {
    exact: HashMap<String, usize, RandomState>,
    /// Wildcards by what follows the `*.`.
    wildcards: HashMap<String, usize, RandomState>,
    /// Wildcards at the end, by what precedes the `.*`.
    end_wildcards: HashMap<String, usize, RandomState>,
    /// Regular expressions, in the order of the configuration.
    expressions: Vec<(HostExpression, usize)>,
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
    /// All hosts that begin with these labels, canonical: `example.*` without the `.*`.
    StartsWith(String),
    /// All hosts that match: `~^www` without the `~`.
    Matches(HostExpression),
}

/// What has matched a host that no site names, without the `*`.
enum Pattern<'a> {
    Below(&'a str),
    StartsWith(&'a str),
    Matches(&'a HostExpression),
}

/// The site that a host has been found to belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundSite {
    /// The index of the site.
    pub site: usize,
    /// Whether a wildcard at the start has matched. Then the host may have a part of the store of
    /// its own.
    pub by_wildcard: bool,
}

/// The host as the configuration has it, but canonical.
impl fmt::Display for SiteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SiteHost::Any => f.write_str("*"),
            SiteHost::Exact(host) => f.write_str(host),
            SiteHost::Below(parent) => write!(f, "*.{parent}"),
            SiteHost::StartsWith(labels) => write!(f, "{labels}.*"),
            SiteHost::Matches(expression) => write!(f, "~{expression}"),
        }
    }
}

impl SiteHost {
    /// Reads a host of the configuration. An error is a message for the user.
    pub fn read(text: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            Err(format!(
                "`{text}` is not a host: {why}; allowed are names such as example.org, wildcards \
                 such as *.example.org and example.*, regular expressions such as \
                 ~^www[0-9]+[.]example[.]org$, addresses, and `*` for every other host"
            ))
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(expression) = text.strip_prefix('~') {
            return match HostExpression::compile(expression) {
                Ok(expression) => Ok(Self::Matches(expression)),
                Err(error) => bad(&format!("the regular expression is wrong: {error}")),
            };
        }
        type Kind = fn(String) -> SiteHost;
        let (name, kind): (_, Kind) = match (text.strip_prefix("*."), text.strip_suffix(".*")) {
            (Some(rest), _) => (rest, Self::Below),
            (None, Some(rest)) => (rest, Self::StartsWith),
            (None, None) => (text, Self::Exact),
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
            return bad("a `*` stands for complete labels at the start or at the end");
        }
        let host = canonical_host(name).into_owned();
        if is_ip6 && name == text {
            let address = host.trim_matches(['[', ']']).parse::<Ipv6Addr>();
            return if address.is_ok() { Ok(Self::Exact(host)) } else { bad("not an address") };
        }
        let has_labels = host.split('.').all(is_label) && !text.ends_with("..*");
        if host.len() > 253 || !has_labels {
            return bad("its labels have 1 to 63 letters, digits, `-` and `_`");
        }
        Ok(kind(host))
    }
}

impl HostTable {
    /// Adds a host of a site. Returns whether no other site has it.
    pub fn add(&mut self, host: SiteHost, site: usize) -> bool {
        let before = match host {
            SiteHost::Any => self.default.replace(site),
            SiteHost::Exact(host) => self.exact.insert(host, site),
            SiteHost::Below(host) => self.wildcards.insert(host, site),
            SiteHost::StartsWith(labels) => self.end_wildcards.insert(labels, site),
            SiteHost::Matches(expression) => {
                let known = self.expressions.iter().find(|(known, _)| *known == expression);
                let before = known.map(|(_, site)| *site);
                self.expressions.push((expression, site));
                before
            }
        };
        before.is_none()
    }

    fn has_patterns(&self) -> bool {
        !self.wildcards.is_empty() || !self.end_wildcards.is_empty() || !self.expressions.is_empty()
    }

    /// Returns whether all hosts belong to one site, so that a request needs no look at its host.
    pub fn is_single(&self) -> bool {
        self.exact.is_empty() && !self.has_patterns()
    }

    /// Returns the site of a canonical host, in the order of nginx: that with this name, that with
    /// the longest wildcard at the start, that with the longest wildcard at the end, that with the
    /// first regular expression that matches, or that of all other hosts.
    pub fn find(&self, host: &str) -> Option<FoundSite> {
        if let Some(site) = self.exact.get(host) {
            return Some(FoundSite { site: *site, by_wildcard: false });
        }
        if self.has_patterns()
            && let Some((pattern, site)) = self.pattern(host)
        {
            return Some(FoundSite { site, by_wildcard: matches!(pattern, Pattern::Below(_)) });
        }
        self.default.map(|site| FoundSite { site, by_wildcard: false })
    }

    /// Returns the entry of the configuration by which [`HostTable::find`] finds the site of a
    /// canonical host.
    pub fn entry(&self, host: &str) -> Option<SiteHost> {
        if self.exact.contains_key(host) {
            return Some(SiteHost::Exact(host.to_owned()));
        }
        let Some((pattern, _)) = self.pattern(host) else {
            return self.default.map(|_| SiteHost::Any);
        };
        Some(match pattern {
            Pattern::Below(parent) => SiteHost::Below(parent.to_owned()),
            Pattern::StartsWith(labels) => SiteHost::StartsWith(labels.to_owned()),
            Pattern::Matches(expression) => SiteHost::Matches(expression.clone()),
        })
    }

    /// Returns the wildcard at the start of a site that is the first in alphabetical order, with
    /// its `*.`.
    pub fn first_wildcard(&self, site: usize) -> Option<String> {
        let of_site = self.wildcards.iter().filter(|(_, known)| **known == site);
        of_site.map(|(parent, _)| format!("*.{parent}")).min()
    }

    /// Returns what has matched a host that no site names, and its site. The host becomes a part of
    /// keys, so it may only have the characters of a name, and not be too long.
    fn pattern<'a>(&'a self, host: &'a str) -> Option<(Pattern<'a>, usize)> {
        if host.len() > NAME_LIMIT_BYTES || !host.split('.').all(is_label) {
            return None;
        }
        let mut rest = host;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(site) = self.wildcards.get(parent) {
                return Some((Pattern::Below(parent), *site));
            }
            rest = parent;
        }
        rest = host;
        while !self.end_wildcards.is_empty()
            && let Some((labels, _)) = rest.rsplit_once('.')
        {
            if let Some(site) = self.end_wildcards.get(labels) {
                return Some((Pattern::StartsWith(labels), *site));
            }
            rest = labels;
        }
        let mut expressions = self.expressions.iter();
        let (expression, site) = expressions.find(|(expression, _)| expression.matches(host))?;
        Some((Pattern::Matches(expression), *site))
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        })
}

#[cfg(test)]
#[path = "host_table_tests.rs"]
mod tests;
