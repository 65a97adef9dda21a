//! The place `app:NAME`: the workers of an application.

use std::rc::Rc;
use std::sync::Arc;

use kirin_files::AppFiles;
use kirin_http::Answer;
use kirin_workers::{App, MetaVariables};

use super::kind::{OpenPlace, PlaceKind};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use crate::filters::backend::{Backend, limit_body};
use crate::filters::chain::Filters;
use crate::request::context::Request;

/// The kind `app:NAME`.
pub static KIND: PlaceKind = PlaceKind {
    name: "app",
    argument: Some("NAME"),
    runs_code: true,
    answers_all: true,
    keys: &["cache"],
    read: |name, named| Ok(Arc::new(AppIndex(named.app(name)?))),
};

/// The place in `try`: the index of the application in the configuration.
struct AppIndex(usize);

impl OpenPlace for AppIndex {
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let backend = AppBackend {
            app: Arc::clone(&opening.resources.apps[self.0]),
            files: Rc::clone(&opening.resources.app_files),
            body_limit_bytes: opening.route.body_limit_bytes,
        };
        let filters = Rc::clone(opening.filters);
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
}

impl Place for AppPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        Some(self.filters.around(request, &self.backend))
    }
}

impl Backend for AppBackend {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let resolved = request.sent_path.without_dots();
        let meta = meta_variables(request, resolved.as_deref());
        let answer = self.app.answer(request.head, request.origin, &self.files, &meta);
        limit_body(answer, self.body_limit_bytes)
    }
}

/// Returns what code is told beside the request. `resolved` is the path without dot segments, if
/// it has any.
pub fn meta_variables<'a>(request: &Request<'a>, resolved: Option<&'a str>) -> MetaVariables<'a> {
    let Request { script_name, path_info, user, namespace, .. } = *request;
    MetaVariables { script_name, path: path_info.or(resolved), site: namespace.name(), user }
}
