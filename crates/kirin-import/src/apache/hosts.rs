//! Virtual hosts: their names, ports and certificates.

use crate::apache::tree::Directive;
use crate::report::Place;
use crate::steps::is_host;

/// A virtual host, or the server itself if there are none.
#[derive(Debug)]
pub(crate) struct VirtualHost {
    pub(crate) place: Place,
    pub(crate) line: String,
    /// The names. Empty: all.
    pub(crate) names: Vec<String>,
    /// Its addresses, as it has them. Without any it is for all.
    addresses: Vec<String>,
    pub(crate) tls: bool,
    /// The directives of the server and its own.
    pub(crate) directives: Vec<Directive>,
    /// Its own directives.
    pub(crate) own: Vec<Directive>,
}

impl VirtualHost {
    /// Reads a virtual host. `outer` are the directives of the server.
    pub(crate) fn read(section: &Directive, outer: &[Directive]) -> Self {
        let mut directives = outer.to_vec();
        directives.extend(section.body().iter().cloned());
        let mut host = Self::of(section.place.clone(), directives, section.body());
        host.line.clone_from(&section.line);
        host.addresses.clone_from(&section.arguments);
        host.tls |= host.ports().contains(&443)
            && section.body().iter().any(|d| d.name == "sslcertificatefile");
        host
    }

    /// Returns the server itself as a host.
    pub(crate) fn of(place: Place, directives: Vec<Directive>, own: &[Directive]) -> Self {
        let mut names = Vec::new();
        let mut tls = false;
        for directive in own {
            match directive.name.as_str() {
                "servername" | "serveralias" => {
                    for name in &directive.arguments {
                        let name = name.rsplit("://").next().unwrap_or_default();
                        let name = name.split(':').next().unwrap_or_default().to_lowercase();
                        if is_host(&name) && !names.contains(&name) {
                            names.push(name);
                        }
                    }
                }
                "sslengine" => tls = directive.argument(0).eq_ignore_ascii_case("on"),
                _ => {}
            }
        }
        let line = "the server".to_owned();
        Self { place, line, names, addresses: Vec::new(), tls, directives, own: own.to_vec() }
    }

    /// Returns the ports.
    pub(crate) fn ports(&self) -> Vec<u16> {
        let port = |address: &String| address.rsplit_once(':')?.1.parse().ok();
        self.addresses.iter().filter_map(port).collect()
    }

    /// Returns where it can be reached: addresses and ports other than those of the two schemes.
    pub(crate) fn reach(&self) -> Vec<String> {
        let usual = |address: &String| {
            let (host, port) = address.rsplit_once(':').unwrap_or((address, "*"));
            matches!(host, "*" | "_default_" | "" | "0.0.0.0" | "[::]")
                && matches!(port, "80" | "443" | "*")
        };
        let mut reach: Vec<_> = self.addresses.iter().filter(|a| !usual(a)).cloned().collect();
        reach.sort();
        reach
    }

    /// Returns the addresses of listeners that it needs itself.
    pub(crate) fn listeners(&self) -> Vec<String> {
        let one = |address: &String| {
            let (host, port) = address.rsplit_once(':')?;
            port.parse::<u16>().ok()?;
            let host = if host == "_default_" { "*" } else { host };
            Some(format!("{host}:{port}"))
        };
        self.addresses.iter().filter_map(one).collect()
    }

    /// Returns the argument of the last directive of a name.
    pub(crate) fn last(&self, name: &str) -> Option<&Directive> {
        self.directives.iter().rfind(|directive| directive.name == name)
    }
}
