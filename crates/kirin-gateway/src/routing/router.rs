//! The router: finds the route of a request and asks the places of the route.
//!
//! There is one router for each event loop. It answers every request of the loop's connections, and
//! their subrequests. The places of a route are asked in order; the first that has the answer gives
//! it. What a route says besides (`redirect`, `basic_auth`, `rewrite`, `error_pages`, `headers`) is
//! in [`around_places`].

mod around_places;
mod authorization;
mod description;
mod error_pages;

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use http::{Method, StatusCode};
use kirin_http::host::canonical_host;
use kirin_http::{Answer, Handler, Origin, RequestHead, RequestPath, Response};
use kirin_origin::NearStore;
use kirin_proxy::Upstream;
use kirin_store::Namespace;
use kirin_workers::App;

use crate::filters::advise::sampling::Sampling;
use crate::filters::cache::counters::CacheCounters;
use crate::filters::chain::FilterParts;
use crate::places::opening::{PlaceError, PlaceResources, SharedParts};
use crate::places::status::StatusPage;
use crate::purge::requests::PurgeRequests;
use crate::request::answers::{Answers, PlaceNumber};
use crate::request::context::{Request, SharedHead};
use crate::request::lineage::Lineage;
use crate::routing::conditions::RequestClient;
use crate::routing::host_table::HostTable;
use crate::routing::operator_maintenance::OperatorMaintenance;
use crate::routing::route::{self, Route};
use crate::routing::route_table::Candidate;
use crate::routing::settings::{GatewayConfig, RouteConfig};
use crate::routing::site::Site;

/// The routes of one event loop. A clone is the same router, for an answer that must wait.
#[derive(Clone)]
pub struct Router(Rc<Routes>);

struct Routes {
    hosts: Arc<HostTable>,
    sites: Vec<Site>,
    /// The routes of all sites, site by site.
    routes: Vec<Route>,
    purge_requests: PurgeRequests,
    maintenance: Arc<OperatorMaintenance>,
    has_apps: bool,
    /// What the routes of another configuration share with these.
    filters: FilterParts,
    places: SharedParts,
    /// Tells the program that these routes may still be asked.
    _in_use: Arc<()>,
}

/// The parts of the program that the routes of one event loop need.
pub struct RouterParts<'a> {
    /// The store.
    pub store: NearStore,
    /// The applications, in the order of the configuration, to which places refer.
    pub apps: &'a [Arc<App>],
    /// The upstreams, in the same way.
    pub upstreams: &'a [Arc<Upstream>],
    /// Where the caches count.
    pub counters: Arc<CacheCounters>,
    /// The sample of responses for `kirin advise`.
    pub sampling: &'a Arc<Sampling>,
    /// The maintenance that an operator has begun.
    pub maintenance: Arc<OperatorMaintenance>,
    /// What the place `status` shows.
    pub status_page: StatusPage,
    /// Is held as long as the routes may be asked, by connections or by requests in progress.
    pub in_use: Arc<()>,
}

impl Router {
    /// Opens the routes of all sites. Caches and connections of `before` stay, as far as nothing
    /// about them has changed.
    pub fn open(
        config: &GatewayConfig,
        parts: RouterParts<'_>,
        before: Option<&Self>,
    ) -> Result<Self, PlaceError> {
        let RouterParts { store, apps, upstreams, counters, .. } = parts;
        let RouterParts { sampling, status_page, maintenance, in_use, .. } = parts;
        let has_apps = !apps.is_empty() || !upstreams.is_empty();
        if let Some(origin) = store.origin() {
            config.share_limits(origin);
        }
        let filters = match before {
            Some(before) => before.0.filters.continued(config),
            None => FilterParts::new(config, &store, sampling, counters),
        };
        let places = before.map(|before| &before.0.places);
        let resources = PlaceResources::new(config, &filters, apps, upstreams, status_page, places);
        let (mut sites, mut routes) = (Vec::new(), Vec::new());
        for site in &config.sites {
            let push = filters.push(site);
            sites.push(Site::open(site, routes.len(), &config.namespaces));
            for route in &site.routes {
                let open_filters = |route: &RouteConfig| filters.of_route(route, &push);
                routes.push(Route::open(route, routes.len(), &open_filters, &resources)?);
            }
        }
        let places = resources.shared;
        let hosts = Arc::clone(&config.hosts);
        let purge_requests = PurgeRequests::new(store, config.purge_from.clone());
        Ok(Self(Rc::new(Routes {
            hosts,
            sites,
            routes,
            purge_requests,
            maintenance,
            has_apps,
            filters,
            places,
            _in_use: in_use,
        })))
    }

    /// Returns whether the request asks for a purge and comes from a peer that may do so.
    pub fn is_purge(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> bool {
        self.0.purge_requests.is_purge(request, origin)
    }

    /// Returns the site of a host, and its part of the store. Returns `None` if no site has the
    /// host.
    fn find_site(&self, host: &str) -> Option<(&Site, Cow<'_, Namespace>)> {
        let Routes { hosts, sites, .. } = &*self.0;
        if hosts.is_single() {
            return sites.first().map(|site| (site, site.namespace()));
        }
        let host = canonical_host(host);
        let found = hosts.find(&host)?;
        let site = sites.get(found.site)?;
        Some((site, site.namespace_of(&host, found)))
    }

    /// Returns the route that answers a request. The `*` of OPTIONS is answered by the route of
    /// `/`, if that has an application.
    fn find(&self, site: &Site, candidate: &Candidate<'_>) -> Option<&Route> {
        let route = self.0.routes.get(site.find(candidate)?)?;
        (candidate.head.path != "*" || route.answers_all).then_some(route)
    }

    /// Returns the route for another path on the host of a request.
    fn find_beside(&self, request: &Request<'_>, path: &RequestPath<'_>) -> Option<&Route> {
        let (site, _) = self.find_site(request.head.host)?;
        self.0.routes.get(site.find_by_path(path)?)
    }

    fn no_route(&self, site: &Site, candidate: &Candidate<'_>) -> Response {
        let request = candidate.head;
        if request.path == "*" && request.method == Method::OPTIONS {
            return route::server_options(self.0.has_apps);
        }
        match site.table().wanted_methods(candidate).as_slice() {
            [] => Response::error(StatusCode::NOT_FOUND),
            methods => route::other_methods(request, methods),
        }
    }

    /// Asks the places of the route, from the place with the index `first` on. It is a part of
    /// [`Answers::ask`], which every request goes through.
    #[inline(always)]
    fn ask_places(&self, route: &Route, request: &Request<'_>, first: usize) -> Answer {
        if let Some(answer) = self.0.purge_requests.answer(request) {
            return answer;
        }
        let answer = route.ask_places(request, first).or_else(|| route.fall_back(request));
        answer.unwrap_or_else(|| Answer::Now(route.not_answered(request)))
    }
}

impl Handler for Router {
    fn answer(&self, head: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        self.ask(head, origin, &Lineage::default())
    }
}

impl Answers for Router {
    fn ask(&self, head: &RequestHead<'_>, origin: Origin<'_>, lineage: &Lineage) -> Answer {
        let Ok(path) = RequestPath::parse(head.path) else {
            return Answer::Now(Response::error(StatusCode::BAD_REQUEST));
        };
        let Some((site, namespace)) = self.find_site(head.host) else {
            return Answer::Now(Response::error(StatusCode::MISDIRECTED_REQUEST));
        };
        let client = RequestClient::of(origin);
        let candidate = Candidate { path: &path, head, client };
        let found = if self.0.purge_requests.is_purge(head, origin) {
            // A page is purged where a GET would find it.
            let get = RequestHead { method: Method::GET, ..head.clone() };
            self.find(site, &Candidate { head: &get, ..candidate })
        } else {
            self.find(site, &candidate)
        };
        let Some(route) = found else {
            return Answer::Now(self.no_route(site, &candidate));
        };
        origin.notes.set_route(route.note);
        let kept = SharedHead::new();
        let request =
            route.enter(Request::new(head, origin, &path, &namespace, lineage, self, &kept));
        if self.0.maintenance.is_used()
            && let Some(answer) = self.answer_in_maintenance(route, &request)
        {
            return answer;
        }
        match &route.rules {
            Some(rules) => self.answer_by_rules(route, rules, None, &request),
            None => self.ask_places(route, &request, 0),
        }
    }

    fn ask_behind(&self, number: PlaceNumber, request: &Request<'_>) -> Answer {
        match self.0.routes.get(number.route) {
            Some(route) => self.ask_places(route, request, number.place + 1),
            None => Answer::Now(Response::error(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }

    fn ask_behind_without_code(&self, number: PlaceNumber, request: &Request<'_>) -> Answer {
        let route = self.0.routes.get(number.route);
        let answer =
            route.and_then(|route| route.ask_places_without_code(request, number.place + 1));
        answer.unwrap_or_else(|| Answer::Now(Response::error(StatusCode::NOT_FOUND)))
    }

    fn shared(&self) -> Rc<dyn Answers> {
        Rc::new(self.clone())
    }
}
