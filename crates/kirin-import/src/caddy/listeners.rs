//! Listeners and certificates of the sites.

use toml::{Table, Value};

use crate::caddy::address::Address;
use crate::caddy::global::Global;
use crate::caddy::site::CaddySite;
use crate::caddy::tree::Directive;
use crate::draft::Draft;

/// What sites say about certificates.
#[derive(Debug, Default)]
struct Certificates {
    /// The names for which an authority gives certificates.
    names: Vec<String>,
    /// The files of certificates, with their keys.
    files: Vec<(String, String)>,
    /// Hosts without either.
    without: Vec<(String, usize)>,
    email: Option<String>,
    directory: Option<String>,
    client_authority: Option<(String, bool)>,
}

/// Adds the listeners of the sites.
pub(crate) fn listeners(sites: &[CaddySite], global: &Global, draft: &mut Draft) {
    let mut certificates = Certificates {
        email: global.email.clone(),
        directory: global.directory.clone(),
        ..Certificates::default()
    };
    let mut https = Vec::new();
    for site in sites {
        let own = own_certificate(site, sites.len() == 1, &mut certificates, draft);
        for address in &site.addresses {
            if address.https {
                https.push((site, address));
                name(site, address, own, global, &mut certificates);
            }
            for listener in site.listeners(address.port) {
                let section = &mut draft.listener(&listener).section;
                let comment = site.place.to_string();
                if section.comments.is_empty() {
                    section.comment(comment);
                }
            }
        }
    }
    for (site, address) in &https {
        for listener in site.listeners(address.port) {
            certificates.write(&listener, draft);
        }
    }
    certificates.notes(sites, draft);
    if !global.no_redirects && global.ports.automatic {
        redirects(sites, &https, global, draft);
    }
    for listener in &mut draft.listeners {
        listener.section.keys.extend(global.listener.keys.iter().cloned());
    }
}

/// Reads the `tls` of a site. Returns whether it has a certificate in files.
fn own_certificate(
    site: &CaddySite,
    only: bool,
    certificates: &mut Certificates,
    draft: &mut Draft,
) -> bool {
    let Some(tls) = site.body.iter().find(|directive| directive.name() == "tls") else {
        return false;
    };
    let line = tls.line();
    let own = match tls.arguments() {
        [chain, key] => {
            certificates.files.push((chain.clone(), key.clone()));
            true
        }
        [email] if email.contains('@') => {
            certificates.email = Some(email.clone());
            false
        }
        [] => false,
        _ => {
            let text = "Kirin has no authority of its own: put certificates into the files";
            draft.notes.left_out(&tls.place, &line, text);
            certificates.without.extend(site.hosts().into_iter().map(|h| (h, site.place.line)));
            return true;
        }
    };
    draft.notes.carried(&tls.place, &line, "");
    for option in tls.inner() {
        tls_option(option, only, certificates, draft);
    }
    own
}

fn tls_option(option: &Directive, only: bool, certificates: &mut Certificates, draft: &mut Draft) {
    let line = option.line();
    match option.name() {
        "protocols" | "ciphers" | "curves" | "alpn" => {
            let text = "Kirin has TLS 1.2 and 1.3 with the suites of rustls (docs/tls.md)";
            draft.notes.by_itself(&option.place, &line, text);
        }
        "ca" => {
            certificates.directory = option.argument(0).map(str::to_owned);
            draft.notes.carried(&option.place, &line, "");
        }
        "client_auth" => {
            let find = |name: &str| {
                let found = option.inner().iter().find(|inner| inner.name() == name);
                found.and_then(|inner| inner.arguments().last().cloned())
            };
            let file = find("trusted_ca_cert_file").or(find("trust_pool"));
            let optional = find("mode").is_some_and(|mode| mode == "verify_if_given");
            match file.filter(|_| only) {
                Some(file) => {
                    certificates.client_authority = Some((file, optional));
                    draft.notes.carried(&option.place, &line, "");
                }
                None => {
                    let text = "PROTECTION NOT CARRIED OVER: a listener asks the clients of \
                                all sites for certificates, and the authority must be a file. \
                                The site is closed";
                    draft.notes.left_out(&option.place, &line, text);
                }
            }
        }
        _ => {
            let text = "Kirin proves names by HTTP and TLS, not by DNS. Write `certificates` \
                        (docs/tls.md)";
            draft.notes.left_out(&option.place, &line, text);
        }
    }
}

/// Returns whether a site asks for certificates of clients in a way that Kirin lacks.
pub(crate) fn needs_client_certificates(site: &CaddySite, only: bool) -> bool {
    let tls = site.body.iter().find(|directive| directive.name() == "tls");
    let asks = tls.and_then(|tls| tls.inner().iter().find(|inner| inner.name() == "client_auth"));
    let in_file = asks.is_some_and(|asks| {
        asks.inner()
            .iter()
            .any(|inner| matches!(inner.name(), "trusted_ca_cert_file" | "trust_pool"))
    });
    asks.is_some() && !(only && in_file)
}

fn name(site: &CaddySite, address: &Address, own: bool, global: &Global, all: &mut Certificates) {
    if own {
        return;
    }
    if address.is_public() && !global.local_certificates {
        if !all.names.contains(&address.host) {
            all.names.push(address.host.clone());
        }
    } else if !address.host.is_empty() || !all.names.is_empty() {
        all.without.push((address.host.clone(), site.place.line));
    }
}

impl Certificates {
    /// Writes the certificates into a listener.
    fn write(&self, address: &str, draft: &mut Draft) {
        let listener = draft.listener(address);
        if self.files.is_empty() && !self.names.is_empty() {
            let names = self.names.iter().map(|name| Value::from(name.as_str())).collect();
            let mut acme = Table::from_iter([("domains".to_owned(), Value::Array(names))]);
            for (key, value) in [("email", &self.email), ("directory", &self.directory)] {
                if let Some(value) = value {
                    acme.insert(key.to_owned(), Value::from(value.as_str()));
                }
            }
            listener.tls.set("acme", acme);
        } else {
            for (chain, key) in &self.files {
                listener.certificate(chain, key);
            }
            let named = self.names.iter().cloned();
            let hosts = named.chain(self.without.iter().map(|(host, _)| host.clone()));
            let mut hosts: Vec<String> = hosts.collect();
            if hosts.is_empty() && self.files.is_empty() {
                hosts.push("default".to_owned());
            }
            for host in hosts {
                let name = crate::draft::name_of(host.trim_start_matches("*."));
                listener.certificate(&format!("{name}.pem"), &format!("{name}.key"));
            }
        }
        if let Some((authority, optional)) = &self.client_authority {
            listener.tls.set("client_ca", authority.as_str());
            if *optional {
                listener.tls.set("client_verify", "optional");
            }
        }
    }

    /// Notes where certificates come from.
    fn notes(&self, sites: &[CaddySite], draft: &mut Draft) {
        let Some(first) = sites.first() else { return };
        let by_authority = self.files.is_empty() && !self.names.is_empty();
        if by_authority {
            let text = "`acme` of the listener, for the names of all sites. Using the authority \
                        is to agree to its terms of service.";
            draft.notes.carried(&first.place, "automatic https", text);
        } else if !self.names.is_empty() {
            let text = "a listener has certificates of an authority or of files, not both: put \
                        certificates for all names into files";
            draft.notes.left_out(&first.place, "automatic https", text);
        }
        for site in sites {
            let without = self.without.iter().filter(|(_, line)| *line == site.place.line);
            let hosts: Vec<_> = without.map(|(host, _)| host.as_str()).collect();
            if hosts.is_empty() {
                continue;
            }
            let text = if by_authority {
                "the authority gives no certificate for this host: put certificates for all names \
                 into files (docs/tls.md)"
            } else {
                "Kirin has no authority of its own, and proves no wildcards: put a certificate \
                 into the file that the listener names"
            };
            draft.notes.left_out(&site.place, &hosts.join(", "), text);
        }
    }
}

/// Redirects http to https by the listener of http, unless sites are served there.
fn redirects(
    sites: &[CaddySite],
    https: &[(&CaddySite, &Address)],
    global: &Global,
    draft: &mut Draft,
) {
    let named = https.iter().any(|(_, address)| !address.host.is_empty());
    if !named || serves_http(sites) {
        return;
    }
    let Some((site, address)) = https.first() else { return };
    for listener in site.listeners(global.ports.http) {
        let section = &mut draft.listener(&listener).section;
        if section.comments.is_empty() {
            section.comment(format!("{}, for http", site.place));
        }
        section.set("redirect_to_https", i64::from(address.port));
    }
}

/// Returns whether any site is served without TLS.
pub(crate) fn serves_http(sites: &[CaddySite]) -> bool {
    sites.iter().any(|site| site.addresses.iter().any(|address| !address.https))
}
