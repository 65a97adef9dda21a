//! A site: its addresses and its directives.

use toml::{Table, Value};

use crate::caddy::address::{Address, Ports};
use crate::caddy::tree::Directive;
use crate::draft::Draft;
use crate::report::Place;
use crate::section::Section;
use crate::steps::Scope;
use crate::steps::effects::{Effect, Scoped};

/// A site of a Caddyfile.
#[derive(Debug)]
pub(crate) struct CaddySite<'a> {
    pub(crate) place: Place,
    pub(crate) addresses: Vec<Address>,
    /// The addresses of this machine that it listens on. Empty: all.
    pub(crate) bind: Vec<String>,
    pub(crate) body: &'a [Directive],
    /// The address as it is written, for notes.
    pub(crate) line: String,
}

impl<'a> CaddySite<'a> {
    /// Reads the addresses of a site. Those that Kirin cannot have are left out.
    pub(crate) fn read(
        site: &'a Directive,
        ports: Ports,
        bind: &[String],
        draft: &mut Draft,
    ) -> Self {
        let mut addresses = Vec::new();
        for word in site.words.iter().flat_map(|word| word.split(',')) {
            if word.is_empty() {
                continue;
            }
            match Address::read(word, ports) {
                Ok(address) => addresses.push(address),
                Err(problem) => draft.notes.left_out(&site.place, word, &problem),
            }
        }
        let own = site.inner().iter().find(|directive| directive.name() == "bind");
        let bind = own.map_or(bind, Directive::arguments).to_vec();
        Self { place: site.place.clone(), addresses, bind, body: site.inner(), line: site.line() }
    }

    /// Returns the hosts. Empty: all.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for address in &self.addresses {
            if address.host.is_empty() {
                return Vec::new();
            }
            if !hosts.contains(&address.host) {
                hosts.push(address.host.clone());
            }
        }
        hosts
    }

    /// Returns the addresses of the listeners for a port.
    pub(crate) fn listeners(&self, port: u16) -> Vec<String> {
        if self.bind.is_empty() {
            return vec![format!("*:{port}")];
        }
        let one = |bind: &String| match bind.strip_prefix("unix/") {
            Some(path) => format!("unix:{path}"),
            None if bind.contains(':') && !bind.starts_with('[') => format!("[{bind}]:{port}"),
            None => format!("{bind}:{port}"),
        };
        self.bind.iter().map(one).collect()
    }

    /// Returns where it can be reached: its ports without those of the two schemes, and `bind`.
    pub(crate) fn reach(&self, ports: Ports) -> (Vec<u16>, &[String]) {
        let own = |address: &Address| address.port != ports.http && address.port != ports.https;
        let mut found: Vec<_> =
            self.addresses.iter().filter(|address| own(address)).map(|a| a.port).collect();
        found.sort_unstable();
        found.dedup();
        (found, &self.bind)
    }

    /// Returns what the site says for all of its routes: the log and the pages of errors.
    pub(crate) fn effects(&self, draft: &mut Draft) -> Vec<Scoped> {
        let mut keys = Section::default();
        for directive in self.body {
            match directive.name() {
                "log" => {
                    if let Some(log) = log(directive, draft) {
                        keys.set("access_log", log);
                    }
                }
                "handle_errors" => {
                    let mut pages = match keys.get("error_pages") {
                        Some(Value::Table(pages)) => pages.clone(),
                        _ => Table::new(),
                    };
                    error_pages(directive, &mut pages, draft);
                    if !pages.is_empty() {
                        keys.set("error_pages", pages);
                    }
                }
                _ => {}
            }
        }
        if keys.keys.is_empty() {
            return Vec::new();
        }
        vec![Scoped { scope: Scope::default(), effect: Effect::Keys(keys) }]
    }
}

/// Reads `log`.
fn log(directive: &Directive, draft: &mut Draft) -> Option<Value> {
    let inner = |name| directive.inner().iter().find(move |inner| inner.name() == name);
    let output = inner("output");
    let path = match output.map(|output| (output.argument(0), output.argument(1))) {
        None | Some((Some("stderr"), _)) => "stderr",
        Some((Some("stdout"), _)) => "stdout",
        Some((Some("file"), Some(path))) => path,
        Some((Some("discard"), _)) => {
            draft.notes.carried(&directive.place, &directive.line(), "");
            return Some(Value::from(false));
        }
        _ => {
            let text = "write `access_log` (docs/access-log.md)";
            draft.notes.left_out(&directive.place, &directive.line(), text);
            return None;
        }
    };
    let format = inner("format").and_then(|format| format.argument(0)).unwrap_or("json");
    let text = match format {
        "json" => "Files are rotated by logrotate, and the keys of JSON are Kirin's.",
        _ => "In the combined format. Files are rotated by logrotate.",
    };
    draft.notes.carried(&directive.place, &directive.line(), text);
    let mut log = Table::from_iter([("path".to_owned(), Value::from(path))]);
    if format == "json" {
        log.insert("format".to_owned(), Value::from("json"));
        return Some(Value::Table(log));
    }
    Some(Value::from(path))
}

/// Reads `handle_errors`: a page for all errors, or for those that are named.
fn error_pages(directive: &Directive, pages: &mut Table, draft: &mut Draft) {
    let statuses: Vec<_> = match directive.arguments() {
        [] => vec!["4xx".to_owned(), "5xx".to_owned()],
        named => named.to_vec(),
    };
    let rewrite = directive.inner().iter().find(|inner| inner.name() == "rewrite");
    let page = rewrite.and_then(|rewrite| rewrite.arguments().last());
    match page.filter(|page| page.starts_with('/') && !page.contains(['{', '?'])) {
        Some(page) => {
            for status in statuses {
                pages.insert(status, Value::from(page.as_str()));
            }
            let text = "The status stays, and pages come from files of the site.";
            draft.notes.carried(&directive.place, &directive.line(), text);
        }
        None => {
            let text = "write `error_pages = { 404 = \"/404.html\", 5xx = \"/50x.html\" }` \
                        (docs/routes.md)";
            draft.notes.left_out(&directive.place, &directive.line(), text);
        }
    }
}
