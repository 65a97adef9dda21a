//! Explains a request for `kirin explain`: its site, route, rules and places, and why other routes
//! do not answer it.
//!
//! Pure: it asks no place, counts nothing, and looks into no store. [`route`] has the rules and
//! places of the route. [`stored`] looks into the store of a running Kirin.

mod program;
pub mod route;
pub mod stored;

use http::Method;
use kirin_http::host::canonical_host;
use kirin_http::request_path::BadPath;
use kirin_http::{Origin, RequestHead, RequestPath};
use kirin_store::Namespace;

use crate::purge::requests::is_purge;
use crate::routing::conditions::RequestClient;
use crate::routing::host_table::SiteHost;
use crate::routing::route_table::{Candidate, Verdict};
use crate::routing::settings::{GatewayConfig, RouteConfig, SiteConfig};
use crate::routing::site::Site;
use route::ExplainedRoute;

/// The site and the routes that a request matches.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The host of the request in the form in which names are compared.
    pub host: String,
    /// The site. `None`: no site has the host, so Kirin answers 421.
    pub site: Option<ExplainedSite<'a>>,
}

/// The site of a request.
#[derive(Debug)]
pub struct ExplainedSite<'a> {
    /// The entry of `hosts` that has matched.
    pub entry: SiteHost,
    /// The part of the store that belongs to the host.
    pub namespace: Namespace,
    /// Routes with more precedence whose path matches.
    pub passed_over: Vec<PassedOver<'a>>,
    /// The route, or the reason why no route answers.
    pub found: FoundRoute<'a>,
    /// Routes with less precedence whose path matches, in their order.
    pub behind: Vec<&'a RouteConfig>,
}

/// A route whose path matches and whose conditions do not hold.
#[derive(Debug)]
pub struct PassedOver<'a> {
    /// The route.
    pub route: &'a RouteConfig,
    /// A sentence for each condition that does not hold.
    pub reasons: Vec<String>,
}

/// The route of a request.
#[derive(Debug)]
pub enum FoundRoute<'a> {
    /// This one.
    Route(Box<ExplainedRoute<'a>>),
    /// No route accepts the method. These methods are accepted.
    OtherMethods(Vec<Method>),
    /// None.
    Nothing,
}

impl<'a> Explanation<'a> {
    /// Explains the request with this head. Kirin answers a bad path with 400 before all else.
    pub fn new(
        config: &'a GatewayConfig,
        head: &RequestHead<'_>,
        origin: Origin<'_>,
    ) -> Result<Self, BadPath> {
        let path = RequestPath::parse(head.path)?;
        let host = canonical_host(head.host).into_owned();
        let found = config.hosts.find(&host).zip(config.hosts.entry(&host));
        let site = found.and_then(|(found, entry)| {
            let site = config.sites.get(found.site)?;
            let opened = Site::open(site, 0, &config.namespaces);
            let namespace = opened.namespace_of(&host, found).into_owned();
            Some(ExplainedSite::new(config, site, entry, namespace, head, origin, &path))
        });
        Ok(Self { host, site })
    }
}

impl<'a> ExplainedSite<'a> {
    fn new(
        config: &'a GatewayConfig,
        site: &'a SiteConfig,
        entry: SiteHost,
        namespace: Namespace,
        head: &RequestHead<'_>,
        origin: Origin<'_>,
        path: &RequestPath<'_>,
    ) -> Self {
        let is_purge = is_purge(&config.purge_from, head, origin);
        let get = RequestHead { method: Method::GET, ..head.clone() };
        let candidate = Candidate {
            path,
            head: if is_purge { &get } else { head },
            client: RequestClient::of(origin),
        };
        let (mut passed_over, mut behind, mut found) = (Vec::new(), Vec::new(), None);
        for (number, verdict) in site.table.explain(&candidate) {
            let Some(route) = site.routes.get(number) else { continue };
            match (verdict, &found) {
                (Verdict::Holds, None) => found = Some(route),
                (Verdict::Fails(reasons), None) => passed_over.push(PassedOver { route, reasons }),
                (_, Some(_)) => behind.push(route),
            }
        }
        let found = match found {
            Some(route) => {
                let explained =
                    ExplainedRoute::new(config, route, &namespace, head, origin, path, is_purge);
                FoundRoute::Route(Box::new(explained))
            }
            None => match site.table.wanted_methods(&candidate) {
                methods if methods.is_empty() => FoundRoute::Nothing,
                methods => FoundRoute::OtherMethods(methods),
            },
        };
        Self { entry, namespace, passed_over, found, behind }
    }
}
