//! The place `app:NAME`: the workers of an application.

use std::rc::Rc;
use std::sync::Arc;

use kirin_files::AppFiles;
use kirin_http::Answer;
use kirin_http::cookies::{cookie_fields, cookie_like_plack};
use kirin_workers::{App, MetaVariables};

use super::kind::{OpenPlace, PlaceKind};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use crate::filters::advise::sampled_backend::SampledBackend;
use crate::filters::backend::{Backend, limit_body};
use crate::filters::chain::Filters;
use crate::filters::mirror::mirrored_backend::MirroredBackend;
use crate::request::context::Request;

/// The kind `app:NAME`.
pub static KIND: PlaceKind = PlaceKind {
    name: "app",
    argument: Some("NAME"),
    runs_code: true,
    answers_all: true,
    keys: &["cache", "mirror"],
    read: |name, named| Ok(Arc::new(AppIndex(named.app(name)?))),
};

/// The place in `try`: the index of the application in the configuration.
struct AppIndex(usize);

impl OpenPlace for AppIndex {
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let backend = AppBackend {
            app: Arc::clone(&opening.resources.apps[self.0]),
            files: Rc::clone(&opening.resources.shared.app_files),
            body_limit_bytes: opening.route.body_limit_bytes,
            session_cookie: opening.resources.config.session_cookie.clone(),
        };
        let filters = Rc::clone(opening.filters);
        let backend = MirroredBackend::new(opening.mirror, backend);
        let sampling = Arc::clone(&filters.sampling);
        let backend = SampledBackend::new(sampling, opening.route, opening.number, backend);
        Ok(Box::new(AppPlace { backend: filters.push_from(backend), filters }))
    }
}

/// The place of one route.
pub struct AppPlace {
    backend: Rc<dyn Backend>,
    filters: Rc<Filters>,
}

/// An application, behind the filters.
struct AppBackend {
    app: Arc<App>,
    /// The files that applications hand back for Kirin to send.
    files: Rc<AppFiles>,
    body_limit_bytes: Option<u64>,
    /// The cookie that names the visitor's session.
    session_cookie: Option<Arc<str>>,
}

impl Place for AppPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        Some(self.filters.around(request, &self.backend))
    }
}

impl Backend for AppBackend {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let resolved = resolved_path(request);
        let meta = meta_variables(request, resolved.as_deref());
        let session = if self.app.has_trial() { self.session(request) } else { None };
        let answer = self.app.answer(request.head, request.origin, &self.files, &meta, session);
        limit_body(answer, self.body_limit_bytes)
    }
}

impl AppBackend {
    /// Returns the value of the cookie that names the visitor's session.
    fn session<'a>(&self, request: &Request<'a>) -> Option<&'a [u8]> {
        let cookie = self.session_cookie.as_deref()?;
        // An empty value is left over from a session that has ended.
        cookie_like_plack(cookie_fields(request.head), cookie.as_bytes())
            .filter(|value| !value.is_empty())
    }
}

/// Returns the path that code gets in place of the one that was sent, if that has two readings. A
/// `rewrite` leaves no empty segments in `PATH_INFO`, so `REQUEST_URI` has none either.
pub fn resolved_path(request: &Request<'_>) -> Option<String> {
    match request.path_info {
        None => request.sent_path.without_dots(),
        Some(_) => request.sent_path.if_resolved(),
    }
}

/// Returns the values that code gets besides the request. `resolved` is its [`resolved_path`].
pub fn meta_variables<'a>(request: &Request<'a>, resolved: Option<&'a str>) -> MetaVariables<'a> {
    let Request { script_name, path_info, user, namespace, given, .. } = *request;
    let (path, site) = (path_info.or(resolved), namespace.name());
    MetaVariables { script_name, path, uri_path: resolved, site, user, given: given.as_slice() }
}
