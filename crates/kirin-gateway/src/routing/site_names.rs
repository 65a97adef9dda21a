//! Finds the part of the store of a site that an operator names.

use std::sync::Arc;

use kirin_http::host::canonical_host;
use kirin_store::Namespace;

use super::host_table::HostTable;
use super::settings::{GatewayConfig, SiteConfig};

/// The most names of sites that an error shows.
const MAX_SHOWN: usize = 10;

/// The names and hosts of all sites.
#[derive(Clone, Debug, Default)]
pub struct SiteNames {
    hosts: Arc<HostTable>,
    sites: Vec<SiteName>,
}

#[derive(Clone, Debug)]
struct SiteName {
    name: Option<String>,
    /// What metrics and reports call it.
    label: String,
    separates_hosts: bool,
}

impl SiteNames {
    /// Takes the names from the configuration.
    pub fn from_config(config: &GatewayConfig) -> Self {
        let of_site = |(at, site): (usize, &SiteConfig)| SiteName {
            name: site.name.clone(),
            label: config.site_label(at).unwrap_or_default().into_owned(),
            separates_hosts: site.separates_hosts,
        };
        let sites = config.sites.iter().enumerate().map(of_site).collect();
        Self { hosts: Arc::clone(&config.hosts), sites }
    }

    /// Returns the label of the site with this name, or else of that with this host. An error is a
    /// message for the operator.
    pub fn label(&self, site: &str) -> Result<&str, String> {
        let host = canonical_host(site);
        let named = self.sites.iter().find(|known| known.name.as_deref() == Some(&*host));
        let found = named.or_else(|| self.sites.get(self.hosts.find(&host)?.site));
        found.map(|site| site.label.as_str()).ok_or_else(|| self.unknown(site))
    }

    /// Returns the namespace of the site with this name, or else of that with this host. An error
    /// is a message for the operator.
    pub fn namespace(&self, site: &str) -> Result<Namespace, String> {
        let host = canonical_host(site);
        let names = || self.sites.iter().filter_map(|site| site.name.as_deref());
        if names().any(|name| name == host) {
            return Ok(Namespace::named(&host));
        }
        let found = self.hosts.find(&host).and_then(|found| {
            let SiteName { name, separates_hosts, .. } = self.sites.get(found.site)?;
            match found.by_wildcard && *separates_hosts {
                true => Some(Namespace::named(&host)),
                false => name.as_deref().map(Namespace::named),
            }
        });
        found.ok_or_else(|| self.unknown(site))
    }

    fn unknown(&self, site: &str) -> String {
        let names = || self.sites.iter().filter_map(|site| site.name.as_deref());
        let mut shown: Vec<&str> = names().take(MAX_SHOWN).collect();
        if names().count() > MAX_SHOWN {
            shown.push("…");
        }
        format!(
            "no site has the name or the host `{site}`; names of sites: {}",
            if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::host_table::SiteHost;
    use super::*;

    #[test]
    fn a_site_is_found_by_its_name_and_by_each_of_its_hosts() {
        let mut names = SiteNames::default();
        let mut hosts = HostTable::default();
        for (name, separates_hosts, of_site) in [
            (None, false, &["*"][..]),
            (Some("a.org"), false, &["a.org", "www.a.org"]),
            (Some("shop"), false, &["b.org", "*.b.org"]),
            (Some("c.org"), true, &["*.c.org", "c.org"]),
        ] {
            for host in of_site {
                assert!(hosts.add(SiteHost::read(host).unwrap(), names.sites.len()));
            }
            let (name, label) = (name.map(str::to_owned), name.unwrap_or_default().to_owned());
            names.sites.push(SiteName { name, label, separates_hosts });
        }
        names.hosts = Arc::new(hosts);
        for (site, expected) in [
            ("a.org", Some("a.org:")),
            ("WWW.A.org.", Some("a.org:")),
            ("shop", Some("shop:")),
            ("b.org", Some("shop:")),
            ("x.b.org", Some("shop:")),
            ("c.org", Some("c.org:")),
            ("x.y.c.org", Some("x.y.c.org:")),
            ("", None),
            ("*", None),
            ("other.org", None),
            // Without its port.
            ("shop:", Some("shop:")),
            ("a:b.c.org", None),
        ] {
            let found = names.namespace(site);
            let prefix = found.as_ref().ok().map(Namespace::prefix);
            assert_eq!(prefix, expected, "{site}");
        }
        for (site, label) in [("WWW.A.org.", "a.org"), ("shop", "shop"), ("other.org", "")] {
            assert_eq!(names.label(site), Ok(label), "{site}");
        }
        let message = names.namespace("other.org").unwrap_err();
        assert!(message.contains("`other.org`; names of sites: a.org, shop, c.org"), "{message}");
    }
}
