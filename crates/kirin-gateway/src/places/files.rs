//! The place `files:DIR`: the files of a directory.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kirin_files::{ANSWERED_BY, Files, FilesConfig};
use kirin_http::percent::{self, NOT_IN_PATH};
use kirin_http::{Answer, Body, RequestHead, RequestPath, Response, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use super::hidden_scripts::HiddenScripts;
use super::kind::{OpenPlace, PlaceKind};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use crate::filters::chain::Filters;
use crate::request::context::Request;
use crate::routing::path_pattern::Ending;
use crate::routing::settings::RouteConfig;

/// The kind `files:DIR`.
pub static KIND: PlaceKind = PlaceKind {
    name: "files",
    argument: Some("DIR"),
    runs_code: false,
    answers_all: false,
    keys: &["listing", "follow_links", "precompressed", "index", "mime_types", "charset"],
    read: |path, named| Ok(Arc::new(FilesPlaceConfig(named.directory(path)?))),
};

/// The place in `try`: its absolute path.
struct FilesPlaceConfig(PathBuf);

impl OpenPlace for FilesPlaceConfig {
    fn path(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let hidden = HiddenScripts::new(&opening.resources.config.script_extensions);
        let config = settings(&self.0, opening.route, &hidden);
        let files =
            Files::open(config, &opening.resources.shared.file_cache).map_err(PlaceError::new)?;
        let directory = xxh3_64(self.0.as_os_str().as_encoded_bytes());
        let is_exact = matches!(opening.route.path.ending(), Ending::Exact { .. });
        let filters = Rc::clone(opening.filters);
        Ok(Box::new(FilesPlace { files, directory, hidden, is_exact, filters }))
    }
}

/// Returns the settings with which a route serves the files of a directory.
pub fn settings(directory: &Path, route: &RouteConfig, hidden: &HiddenScripts) -> FilesConfig {
    // The request for a directory names no script, but its index page may be one.
    let is_page = |name: &&String| !hidden.hide(name.as_bytes());
    FilesConfig {
        follow_links: route.follow_links,
        listing: route.listing,
        precompressed: route.precompressed,
        index: route.index.iter().filter(is_page).cloned().collect(),
        media_types: Arc::clone(&route.media_types),
        compress: route.compress.for_shared(),
        ..FilesConfig::new(directory)
    }
}

/// The place of one route.
pub struct FilesPlace {
    files: Files,
    /// The hash of the path of the directory.
    directory: u64,
    hidden: HiddenScripts,
    /// Whether the route is for one path only.
    is_exact: bool,
    filters: Rc<Filters>,
}

impl FilesPlace {
    /// Returns whether the client has asked for the directory of the route without a slash at the
    /// end, and `rewrite` has added one. The links in its index page would lead to other paths.
    fn lacks_slash(&self, request: &Request<'_>) -> bool {
        let ends_in_slash = |path: &RequestPath<'_>| path.normalized().ends_with(b"/");
        !self.is_exact
            && request.rewritten.is_get_or_head()
            && ends_in_slash(request.path)
            && !ends_in_slash(request.sent_path)
    }

    /// Makes the redirect of a directory to its own path with a slash right for a route with a
    /// `rewrite`. The client knows the directory by the path that it has sent.
    fn point_to_sent_path(&self, response: &mut Response, request: &Request<'_>) {
        if !request.is_rewritten() {
            return;
        }
        if self.lacks_slash(request) {
            *response = Response::new(ANSWERED_BY, StatusCode::MOVED_PERMANENTLY, Body::Empty);
        } else if response.fields.get("location").is_none() {
            return;
        }
        let path = percent::encode(request.sent_path.normalized(), NOT_IN_PATH);
        let path = path.trim_end_matches('/');
        let query = request.head.query.map(|query| format!("?{query}")).unwrap_or_default();
        response.fields.remove("location");
        response.fields.push("Location", format!("{path}/{query}"));
    }
}

impl Place for FilesPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        if self.hidden.hide(request.path.normalized()) {
            return None;
        }
        self.filters.around_files(request, self.directory, |head: &RequestHead<'_>| {
            let mut response = self.files.answer(head, Instant::now())?;
            self.point_to_sent_path(&mut response, request);
            Some(response)
        })
    }

    fn answer_without_code(&self, request: &Request<'_>) -> Option<Answer> {
        self.answer(request)
    }

    fn has(&self, request: &Request<'_>) -> bool {
        !self.hidden.hide(request.path.normalized())
            && self.files.has(request.rewritten, Instant::now())
    }
}
