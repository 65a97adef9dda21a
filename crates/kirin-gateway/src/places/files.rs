//! The place `files:DIR`: the files of a directory.

use std::rc::Rc;
use std::time::Instant;

use kirin_files::Files;
use kirin_http::percent::{self, NOT_IN_PATH};
use kirin_http::{Answer, RequestHead, Response};

use super::Place;
use super::hidden_scripts::HiddenScripts;
use crate::filters::chain::Filters;
use crate::request::context::Request;

/// The place of one route.
pub struct FilesPlace {
    files: Files,
    hidden: HiddenScripts,
    filters: Rc<Filters>,
    /// The path of the route, decoded and without a slash at its end.
    route_path: String,
}

impl FilesPlace {
    /// The place in a directory, without the scripts that are hidden in it.
    pub fn new(
        files: Files,
        hidden: HiddenScripts,
        filters: Rc<Filters>,
        route_path: String,
    ) -> Self {
        Self { files, hidden, filters, route_path }
    }

    /// Replaces the target of a directory's redirect to its own path with a slash. The client knows
    /// the directory by the path that it has sent.
    fn point_to_sent_path(&self, response: &mut Response, request: &Request<'_>) {
        if !request.is_rewritten() || response.fields.get("location").is_none() {
            return;
        }
        let rest = request.sent_path.rest_below(&self.route_path);
        let query = request.head.query.map(|query| format!("?{query}")).unwrap_or_default();
        let route_path = percent::encode(self.route_path.as_bytes(), NOT_IN_PATH);
        response.fields.remove("location");
        response.fields.push("Location", format!("{route_path}{rest}/{query}"));
    }
}

impl Place for FilesPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        if self.hidden.hide(request.path.normalized()) {
            return None;
        }
        self.filters.around_files(request, |head: &RequestHead<'_>| {
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
