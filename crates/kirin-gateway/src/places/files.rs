//! The place `files:DIR`: the files of a directory.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use kirin_files::{ANSWERED_BY, Files, FilesConfig};
use kirin_http::percent::{self, NOT_IN_PATH};
use kirin_http::{Answer, Body, RequestHead, RequestPath, Response, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use super::fallback::{is_navigation, mark_immutable, mark_page};
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
    keys: &[
        "listing",
        "follow_links",
        "precompressed",
        "index",
        "mime_types",
        "charset",
        "fallback",
        "immutable",
    ],
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
        let is_exact = is_exact(opening.route);
        Ok(Box::new(FilesPlace {
            files,
            directory,
            hidden,
            is_exact,
            filters: Rc::clone(opening.filters),
            fallback: opening.route.fallback.clone(),
            is_immutable: opening.route.immutable,
        }))
    }
}

/// Returns whether a route is for one path only.
pub fn is_exact(route: &RouteConfig) -> bool {
    matches!(route.path.ending(), Ending::Exact { .. })
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
    /// The path of the page for navigations, percent-encoded.
    fallback: Option<String>,
    /// Whether its files never change.
    is_immutable: bool,
}

/// Makes the redirect of a directory to its own path with a slash right for a route with a
/// `rewrite`. The client knows the directory by the path `sent`. It also gets such a redirect if
/// `rewrite` has added the slash, because the links in the index page would lead to other paths.
/// `is_exact` says that the route is for one path only, which has no other form.
pub fn point_to_sent_path(
    response: &mut Response,
    rewritten: &RequestHead<'_>,
    sent: &RequestPath<'_>,
    is_exact: bool,
) {
    let lacks_slash = rewritten.path.ends_with('/') && !sent.is_directory();
    if lacks_slash && !is_exact && rewritten.is_get_or_head() {
        *response = Response::new(ANSWERED_BY, StatusCode::MOVED_PERMANENTLY, Body::Empty);
    } else if response.fields.get("location").is_none() {
        return;
    }
    let path = percent::encode(sent.normalized(), NOT_IN_PATH);
    let path = path.trim_end_matches('/');
    let query = rewritten.query.map(|query| format!("?{query}")).unwrap_or_default();
    response.fields.remove("location");
    response.fields.push("Location", format!("{path}/{query}"));
}

impl FilesPlace {
    /// Answers a request with the file of its path, if there is one.
    fn find(&self, request: &Request<'_>) -> Option<Answer> {
        if self.hidden.hide(request.path.normalized()) {
            return None;
        }
        self.filters.around_files(request, self.directory, |head: &RequestHead<'_>| {
            let mut response = self.files.answer(head, Instant::now())?;
            if request.is_rewritten() {
                let Request { rewritten, sent_path, .. } = request;
                point_to_sent_path(&mut response, rewritten, sent_path, self.is_exact);
            }
            Some(response)
        })
    }
}

impl Place for FilesPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        let answer = self.find(request)?;
        Some(match self.is_immutable {
            true => answer.map(mark_immutable),
            false => answer,
        })
    }

    fn fallback(&self, request: &Request<'_>) -> Option<Answer> {
        let path = self.fallback.as_deref().filter(|_| is_navigation(request.head))?;
        let head = RequestHead { target: path, path, ..request.rewritten.clone() };
        let path = RequestPath::parse(path).ok()?;
        let page = self.find(&Request { path: &path, rewritten: &head, ..*request })?;
        Some(page.map(mark_page))
    }

    fn answer_without_code(&self, request: &Request<'_>) -> Option<Answer> {
        self.answer(request)
    }

    fn has(&self, request: &Request<'_>) -> bool {
        !self.hidden.hide(request.path.normalized())
            && self.files.has(request.rewritten, Instant::now())
    }
}
