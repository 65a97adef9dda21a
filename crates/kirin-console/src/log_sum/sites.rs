//! The sites of the requests in access logs: by the host of a line, or by the log that it is in.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use kirin_config::ConfigSource;
use kirin_gateway::routing::host_table::{HostTable, SiteHost};
use kirin_http::host::canonical_host;
use toml::Value;

use super::configured_logs::{canonical, for_each_log, is_log, log_file};

/// How the site of a request is found, and which sites are counted.
pub struct LogSites {
    /// The sites of the configuration. Without them, each host is a site.
    configured: Option<ConfiguredSites>,
    /// The sites whose requests are counted. Empty for all.
    wanted: Vec<String>,
}

/// The sites of a configuration.
pub struct ConfiguredSites {
    hosts: HostTable,
    /// The names, by the indexes in `hosts`.
    names: Vec<String>,
    /// The logs, each with the index of the site to which it belongs, if it belongs to one.
    logs: Vec<(PathBuf, Option<usize>)>,
}

/// The word for requests of no site.
const NO_SITE: &str = "-";

impl LogSites {
    /// Returns how sites are found: by the hosts of the lines, or as `configured` says. `wanted`
    /// are the only sites that are counted, by name or by host; `-` stands for no site.
    pub fn new(configured: Option<ConfiguredSites>, wanted: &[String]) -> Result<Self, String> {
        let name_of = |wanted: &String| match &configured {
            _ if wanted == NO_SITE => Ok(String::new()),
            Some(configured) => configured.name_of(wanted),
            None => Ok(canonical_host(wanted).into_owned()),
        };
        let wanted = wanted.iter().map(name_of).collect::<Result<_, _>>()?;
        Ok(Self { configured, wanted })
    }

    /// Returns the site to which all lines of a log belong, if there is one.
    pub fn of_log(&self, log: &Path) -> Option<&str> {
        let configured = self.configured.as_ref()?;
        let log = canonical(log);
        let logs = configured.logs.iter().filter(|(path, _)| is_log(&log, path));
        let longest =
            logs.clone().map(|(path, _)| path).max_by_key(|path| path.as_os_str().len())?;
        let mut sites = logs.filter(|(path, _)| path == longest).map(|(_, site)| *site);
        let first = sites.next().flatten()?;
        sites.all(|site| site == Some(first)).then(|| configured.names[first].as_str())
    }

    /// Returns the site of a host as a line has it. It is empty if the host has none.
    pub fn of_host<'a>(&'a self, host: &'a [u8]) -> Cow<'a, str> {
        let Ok(host) = std::str::from_utf8(host) else { return Cow::Borrowed("") };
        let host = canonical_host(host);
        match &self.configured {
            None => host,
            Some(configured) => configured
                .hosts
                .find(&host)
                .map_or(Cow::Borrowed(""), |found| Cow::Borrowed(&configured.names[found.site])),
        }
    }

    /// Returns whether the requests of a site are counted.
    pub fn takes(&self, site: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == site)
    }
}

impl ConfiguredSites {
    /// Reads the sites of a configuration. Returns `None` if there is no site.
    pub fn read(table: &Value, source: &ConfigSource) -> Result<Option<Self>, String> {
        let mut found = Self { hosts: HostTable::default(), names: Vec::new(), logs: Vec::new() };
        let sites = table.get("site").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for site in sites {
            found.add(site)?;
            let index = found.names.len() - 1;
            for_each_log(site, &mut |path, _| found.add_log(path, Some(index), source));
        }
        // A log of a listener or of routes at the top level has requests of several sites.
        for (key, value) in table.as_table().into_iter().flatten() {
            if key != "site" {
                for_each_log(value, &mut |path, _| found.add_log(path, None, source));
            }
        }
        Ok((!found.names.is_empty()).then_some(found))
    }

    /// Returns the number of sites.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    fn add_log(&mut self, path: &str, site: Option<usize>, source: &ConfigSource) {
        self.logs.extend(log_file(path, source).map(|path| (path, site)));
    }

    fn add(&mut self, site: &Value) -> Result<(), String> {
        let index = self.names.len();
        let hosts = site.get("hosts").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut hosts_read = Vec::new();
        for host in hosts.iter().filter_map(Value::as_str) {
            let host = SiteHost::read(host)?;
            hosts_read.push(host.clone());
            self.hosts.add(host, index);
        }
        // As the program names it: see `GatewayConfig::site_label`.
        let exact = hosts_read.iter().find(|host| matches!(host, SiteHost::Exact(_)));
        let name = match site.get("name").and_then(Value::as_str) {
            Some(name) => name.to_owned(),
            None => match exact.map(ToString::to_string) {
                Some(name) => name,
                None => self.hosts.first_wildcard(index).unwrap_or_default(),
            },
        };
        self.names.push(name);
        Ok(())
    }

    /// Returns the name of the site with this name or host.
    fn name_of(&self, wanted: &str) -> Result<String, String> {
        if self.names.iter().any(|name| name == wanted) {
            return Ok(wanted.to_owned());
        }
        let host = canonical_host(wanted);
        match self.hosts.find(&host) {
            Some(found) => Ok(self.names[found.site].clone()),
            None => {
                let names: Vec<&str> =
                    self.names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
                Err(format!(
                    "--site {wanted}: the configuration has no such site; it has {}",
                    names.join(", ")
                ))
            }
        }
    }
}
