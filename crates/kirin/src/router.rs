//! Routes: a list of places to look, in order; the first that has the answer gives it.
//!
//! One router a loop; it answers every request of the loop's connections.

use crate::config::check::{PlaceSite, Site};
use crate::store_place;
use http::StatusCode;
use kirin_files::request_path::RequestPath;
use kirin_files::{AppFiles, Files, FilesConfig, FilesError};
use kirin_http::{Answer, Handler, Origin, RateLimit, RequestHead, Response};
use kirin_store::{Now, Store};
use kirin_workers::App;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The routes with everything they name.
pub struct Router {
    routes: Vec<Route>,
    store: Arc<Store>,
    /// Files that applications hand back.
    app_files: Rc<AppFiles>,
}

struct Route {
    path: String,
    places: Vec<Place>,
    body_limit_bytes: Option<u64>,
    rate_limits: Vec<Arc<RateLimit>>,
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
            routes.push(Route {
                path: route.path.clone(),
                places,
                body_limit_bytes: route.body_limit_bytes,
                rate_limits: route.rate_limits.clone(),
            });
        }
        Ok(Self { routes, store, app_files: Rc::default() })
    }

    /// The route with the longest path that `path` lies below; the routes are sorted so. The `*` of OPTIONS is for all, which
    /// is `/`.
    fn route(&self, path: &[u8]) -> Option<&Route> {
        let path = if path == b"*" { b"/" } else { path };
        self.routes.iter().find(|route| {
            path.strip_prefix(route.path.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
    }
}

impl Route {
    /// Counts the request; gives the refusal when it is one too many.
    fn admit(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Result<(), Response> {
        if self.rate_limits.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        for limit in &self.rate_limits {
            limit.count(request, origin.peer, now).map_err(|too_many| {
                let mut response = Response::error(StatusCode::TOO_MANY_REQUESTS);
                // Whole seconds, after which there is room indeed (RFC 6585 section 4).
                let seconds = too_many.retry_after.as_secs() + 1;
                response.fields.push("Retry-After", seconds.to_string());
                response
            })?;
        }
        Ok(())
    }

    fn limit_body(&self, answer: Answer) -> Answer {
        match (answer, self.body_limit_bytes) {
            (Answer::Later(later), Some(limit)) => Answer::Later(Box::new(move |mut body| {
                body.limit(limit);
                later(body)
            })),
            (answer, _) => answer,
        }
    }
}

impl Handler for Router {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        let path = match meant_path(request.path) {
            Ok(path) => path,
            Err(status) => return Answer::Now(Response::error(status)),
        };
        let Some(route) = self.route(&path) else {
            return Answer::Now(Response::error(StatusCode::NOT_FOUND));
        };
        if let Err(refusal) = route.admit(request, origin) {
            return Answer::Now(refusal);
        }
        let now = Now::from_unix_seconds(origin.now);
        for (index, place) in route.places.iter().enumerate() {
            let is_last = index + 1 == route.places.len();
            let response = match place {
                Place::Store => store_place::answer(&self.store, request, now, is_last),
                Place::Files(files) => files.answer(request, Instant::now()),
                Place::App(app) => {
                    return route.limit_body(app.answer(request, origin, &self.app_files));
                }
            };
            if let Some(response) = response {
                return Answer::Now(response);
            }
        }
        Answer::Now(nobody_answered(route, request))
    }
}

/// The path as routes see it: decoded, and with `.` and `..` resolved, so that `/x/../admin` and `/%61dmin` come under the
/// route of `/admin`. The places get the request as it was sent.
fn meant_path(raw: &str) -> Result<Cow<'_, [u8]>, StatusCode> {
    let bytes = raw.as_bytes();
    let plain =
        memchr::memchr(b'%', bytes).is_none() && !bytes.windows(2).any(|pair| pair == b"//" || pair == b"/.");
    if plain {
        return Ok(Cow::Borrowed(bytes));
    }
    match RequestPath::parse(raw) {
        Ok(path) => Ok(Cow::Owned([b"/", &path.name[..]].concat())),
        Err(no_file) => no_file.refusal().map_or(Ok(Cow::Borrowed(bytes)), Err),
    }
}

/// No place had the answer: there is nothing of that name, or nothing that takes the method.
fn nobody_answered(route: &Route, request: &RequestHead<'_>) -> Response {
    let is_file = |place: &Place| matches!(place, Place::Files(files) if files.has(request, Instant::now()));
    if request.is_get_or_head() || !route.places.iter().any(is_file) {
        return Response::error(StatusCode::NOT_FOUND);
    }
    let mut response = Response::error(StatusCode::METHOD_NOT_ALLOWED);
    response.fields.push("Allow", Files::ALLOW);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_see_what_a_path_means() {
        for (raw, meant) in [
            ("/", Ok("/")),
            ("/a/b", Ok("/a/b")),
            ("/%61dmin", Ok("/admin")),
            ("/x/../admin/y", Ok("/admin/y")),
            ("//admin", Ok("/admin")),
            ("/./admin", Ok("/admin")),
            ("/a%2Fb", Ok("/a%2Fb")),
            ("/..", Err(400)),
            ("/%", Err(400)),
            ("/%00", Err(400)),
            ("*", Ok("*")),
        ] {
            let got = meant_path(raw).map(|path| String::from_utf8_lossy(&path).into_owned());
            assert_eq!(
                got.as_deref().map_err(StatusCode::as_u16),
                meant.map_err(|status: u16| status),
                "{raw}"
            );
        }
    }
}
