//! A site on one event loop: its routes, and its part of the store.

use std::borrow::Cow;
use std::sync::Arc;

use kirin_http::RequestPath;
use kirin_store::{Namespace, NamespaceNames};

use crate::routing::host_table::FoundSite;
use crate::routing::route_table::{Candidate, RouteTable};
use crate::routing::settings::SiteConfig;

/// A site on one event loop.
pub struct Site {
    namespace: Namespace,
    /// Whether each host that a wildcard matches has a namespace of its own.
    separates_hosts: bool,
    table: Arc<RouteTable>,
    /// The index of its first route among those of all sites.
    first: usize,
}

impl Site {
    /// Opens a site. `first` is the index of its first route among those of all sites, and
    /// `namespaces` are those of all sites.
    pub fn open(config: &SiteConfig, first: usize, namespaces: &NamespaceNames) -> Self {
        let namespace = match &config.name {
            Some(name) => Namespace::named(name),
            None => Namespace::root(namespaces),
        };
        let table = Arc::clone(&config.table);
        Self { namespace, separates_hosts: config.separates_hosts, table, first }
    }

    /// Returns the part of the store for a canonical host of the site.
    pub fn namespace_of(&self, host: &str, found: FoundSite) -> Cow<'_, Namespace> {
        match self.separates_hosts && found.by_wildcard {
            true => Cow::Owned(Namespace::named(host)),
            false => self.namespace(),
        }
    }

    /// Returns the part of the store for the hosts that the site names.
    pub fn namespace(&self) -> Cow<'_, Namespace> {
        Cow::Borrowed(&self.namespace)
    }

    /// Returns the index of the route that answers a request, among those of all sites. The `*` of
    /// OPTIONS means all routes: that of `/` answers it.
    pub fn find(&self, candidate: &Candidate<'_>) -> Option<usize> {
        if candidate.head.path == "*" {
            return self.find_by_path(&RequestPath::parse("/").ok()?);
        }
        self.table.find(candidate).map(|number| self.first + number)
    }

    /// Returns the index of the route that answers requests for `path` whose other properties are
    /// not known, among those of all sites.
    pub fn find_by_path(&self, path: &RequestPath<'_>) -> Option<usize> {
        self.table.find_by_path(path).map(|number| self.first + number)
    }

    /// Returns the table of its routes.
    pub fn table(&self) -> &RouteTable {
        &self.table
    }
}
