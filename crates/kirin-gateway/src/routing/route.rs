//! A route of one event loop, with the places and filters that it names opened.

use std::rc::Rc;
use std::sync::Arc;

use http::{Method, StatusCode};
use kirin_http::{Answer, AnsweredBy, Body, RequestHead, Response, RouteNote};
use kirin_ssi::Syntax;

use crate::filters::chain::Filters;
use crate::filters::mirror::route_mirror::RouteMirror;
use crate::filters::mirror::settings::MirrorSettings;
use crate::places::fallback;
use crate::places::kind::PlaceConfig;
use crate::places::opening::{Opening, PlaceError, PlaceResources};
use crate::places::place::Place;
use crate::places::proxy;
use crate::request::answers::PlaceNumber;
use crate::request::context::Request;
use crate::routing::path_pattern::PathPattern;
use crate::routing::protection::Protection;
use crate::routing::rules::Rules;
use crate::routing::settings::RouteConfig;

/// The methods that places without code answer, as the value of `Allow`.
const ALLOW: &str = "GET, HEAD, OPTIONS";

/// The methods that a server with applications may answer.
const ALLOW_WITH_APPS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// One route of one event loop.
pub struct Route {
    /// The number of the route, in the order of the file.
    pub number: usize,
    /// The paths that the route is for.
    pub path: PathPattern,
    /// The places, in the order in which they are asked.
    pub places: Vec<Box<dyn Place>>,
    /// Whether the last of its places answers every request.
    pub answers_all: bool,
    /// The rules around the places. None if the route only names places.
    pub rules: Option<Arc<Rules>>,
    /// The place that its `auth_request` asks, if that names one.
    pub authority: Option<Box<Route>>,
    /// The note about the route: its number, and the access log of its requests.
    pub note: RouteNote,
    /// Whether navigations that no place answers get a page.
    has_fallback: bool,
    syntax: Syntax,
    /// The conditions that a request has passed when the places are asked.
    protection: Protection,
}

impl Route {
    /// Opens the places of the route with this index. `open_filters` opens the filters of a route.
    pub fn open(
        config: &RouteConfig,
        index: usize,
        open_filters: &dyn Fn(&RouteConfig) -> Filters,
        resources: &PlaceResources<'_>,
    ) -> Result<Self, PlaceError> {
        let filters = Rc::new(open_filters(config));
        let open_mirror = |settings: &Arc<MirrorSettings>| {
            let backend = proxy::open_mirror(settings.upstream, resources);
            RouteMirror::new(Arc::clone(settings), backend)
        };
        let mirror = config.mirror.as_ref().map(open_mirror);
        let open = |(place, place_config): (usize, &PlaceConfig)| {
            let number = PlaceNumber { route: index, place };
            let (filters, mirror) = (&filters, mirror.as_ref());
            place_config.open(&Opening { route: config, number, filters, mirror, resources })
        };
        let open_authority =
            |route: &RouteConfig| Self::open(route, index, open_filters, resources);
        let authority = config.authority.as_deref().map(open_authority).transpose()?.map(Box::new);
        Ok(Self {
            authority,
            number: index,
            path: config.path.clone(),
            places: config.places.iter().enumerate().map(open).collect::<Result<_, _>>()?,
            answers_all: config.places.last().is_some_and(PlaceConfig::answers_all),
            rules: (!config.rules.is_empty()).then(|| Arc::clone(&config.rules)),
            note: RouteNote { number: Some(config.number), log: config.log },
            has_fallback: config.fallback.is_some(),
            syntax: config.syntax(),
            protection: config.protection(),
        })
    }

    /// Adds to a request what its route says.
    pub fn enter<'a>(&self, request: Request<'a>) -> Request<'a> {
        let protection = self.protection.with_client(request.origin.client);
        Request { syntax: self.syntax, protection, ..request }
    }

    /// Asks the places one after the other, from the place with the index `first` on.
    pub fn ask_places(&self, request: &Request<'_>, first: usize) -> Option<Answer> {
        self.places.iter().skip(first).find_map(|place| place.answer(request))
    }

    /// Answers a request that no place has answered with the page of `fallback`.
    pub fn fall_back(&self, request: &Request<'_>) -> Option<Answer> {
        if !self.has_fallback {
            return None;
        }
        self.places.iter().find_map(|place| place.fallback(request))
    }

    /// Asks the places in the same way for an error page, for which no code is asked.
    pub fn ask_places_without_code(&self, request: &Request<'_>, first: usize) -> Option<Answer> {
        self.places.iter().skip(first).find_map(|place| place.answer_without_code(request))
    }

    /// Returns the response for a request that no place has answered: nothing has this path, or it
    /// does not take the method.
    pub fn not_answered(&self, request: &Request<'_>) -> Response {
        let head = request.rewritten;
        if head.is_get_or_head() || !self.places.iter().any(|place| place.has(request)) {
            let mut response = Response::error(StatusCode::NOT_FOUND);
            if self.has_fallback {
                fallback::vary(&mut response);
            }
            return response;
        }
        match head.method {
            Method::OPTIONS => options(ALLOW),
            _ => method_not_allowed(ALLOW),
        }
    }
}

/// Returns the response to a request whose path has routes for other methods only.
pub fn other_methods(request: &RequestHead<'_>, methods: &[Method]) -> Response {
    let mut names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if methods.contains(&Method::GET) {
        names.push("HEAD");
    }
    names.push("OPTIONS");
    names.sort_unstable();
    names.dedup();
    let allow = names.join(", ");
    match request.method {
        Method::OPTIONS => options(&allow),
        _ => method_not_allowed(&allow),
    }
}

/// Returns the response to `OPTIONS *`, which is about the server (RFC 9110 section 9.3.7).
pub fn server_options(has_apps: bool) -> Response {
    options(if has_apps { ALLOW_WITH_APPS } else { ALLOW })
}

fn method_not_allowed(allow: &str) -> Response {
    let mut response = Response::error(StatusCode::METHOD_NOT_ALLOWED);
    response.fields.push("Allow", allow);
    response
}

fn options(allow: &str) -> Response {
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::NO_CONTENT, Body::Empty);
    response.fields.push("Allow", allow);
    response
}
