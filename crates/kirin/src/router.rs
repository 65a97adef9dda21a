//! Routes: a list of places to look, in order; the first that has the answer gives it.
//!
//! One router a loop; it answers every request of the loop's connections.

use crate::config::check::{PlaceSite, Site};
use crate::store_place;
use http::{Method, StatusCode};
use kirin_files::{Files, FilesConfig, FilesError};
use kirin_http::{Answer, Handler, Origin, RequestHead, Response};
use kirin_store::{Now, Store};
use kirin_workers::App;
use std::sync::Arc;

/// The routes with everything they name.
pub struct Router {
    routes: Vec<Route>,
    store: Arc<Store>,
}

struct Route {
    path: String,
    places: Vec<Place>,
}

enum Place {
    Store,
    Files(Box<Files>),
    App(Arc<App>),
}

impl Router {
    /// Opens what the routes of `site` name. `apps` are in the order of `site.apps`.
    pub fn open(site: &Site, store: Arc<Store>, apps: &[Arc<App>]) -> Result<Self, FilesError> {
        let mut routes = Vec::new();
        for route in &site.routes {
            let mut places = Vec::new();
            for place in &route.places {
                places.push(match place {
                    PlaceSite::Store => Place::Store,
                    PlaceSite::Files(root) => Place::Files(Box::new(Files::open(FilesConfig::new(root))?)),
                    PlaceSite::App(index) => Place::App(Arc::clone(&apps[*index])),
                });
            }
            routes.push(Route { path: route.path.clone(), places });
        }
        Ok(Self { routes, store })
    }

    /// The route with the longest path that `path` lies below; the routes are sorted so.
    fn route(&self, path: &[u8]) -> Option<&Route> {
        self.routes.iter().find(|route| {
            path.strip_prefix(route.path.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
    }
}

impl Handler for Router {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        let path = match kirin_files::path::normalize(request.path) {
            Ok(path) => path,
            Err(_) => return Answer::Now(Response::error(StatusCode::BAD_REQUEST)),
        };
        let Some(route) = self.route(&path) else {
            return Answer::Now(Response::error(StatusCode::NOT_FOUND));
        };
        let now = Now::from_unix_seconds(origin.now);
        for (index, place) in route.places.iter().enumerate() {
            let is_last = index + 1 == route.places.len();
            let response = match place {
                Place::Store => store_place::answer(&self.store, request, now, is_last),
                Place::Files(files) => files.answer(request, origin.now),
                Place::App(app) => return app.answer(request, origin),
            };
            if let Some(response) = response {
                return Answer::Now(response);
            }
        }
        Answer::Now(nobody_answered(request))
    }
}

/// No place had the answer: there is nothing of that name, or nothing that takes the method.
fn nobody_answered(request: &RequestHead<'_>) -> Response {
    if request.is_get_or_head() {
        return Response::error(StatusCode::NOT_FOUND);
    }
    let status =
        if request.method == Method::OPTIONS { StatusCode::NO_CONTENT } else { StatusCode::METHOD_NOT_ALLOWED };
    let mut response = Response::error(status);
    response.fields.push("Allow", "GET, HEAD");
    response
}
