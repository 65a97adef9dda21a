//! The end of every response of a route with rules: an error may get a page, and all get the fields
//! of the route.
//!
//! The page comes from a place that has it in memory or in a file. The code of an application is
//! not asked for it: it may be what failed. The parts of the page are asked for as those of other
//! pages, on behalf of the client whose request failed.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use httparse::Header;
use kirin_http::{Answer, BodyLength, RequestBody, RequestHead, RequestPath, Response};

use super::Router;
use crate::request::context::{Request, SharedHead};
use crate::request::subrequest::is_kept;
use crate::routing::error_page;
use crate::routing::protection::Protection;
use crate::routing::rules::Rules;
use crate::routing::variables::RequestValues;

impl Router {
    /// Returns the response to `request` as it leaves the route.
    pub(super) fn finish(
        &self,
        rules: &Arc<Rules>,
        response: Response,
        request: &Request<'_>,
    ) -> Answer {
        self.finish_with_page(rules, response, None, request)
    }

    /// Does the same. The error gets the page at `page`, if there is one, and not that of its
    /// status.
    pub(super) fn finish_with_page(
        &self,
        rules: &Arc<Rules>,
        mut response: Response,
        page: Option<&str>,
        request: &Request<'_>,
    ) -> Answer {
        // A part of a page that is an error is not shown, so it needs no page.
        // The places have been asked on behalf of a user whom `request` does not know.
        let user = request.origin.notes.steps_so_far().and_then(|steps| steps.user());
        let values = RequestValues { user: user.as_deref(), ..request.values() };
        let path = if request.lineage.variables().is_none() {
            let of_status = || Some(rules.error_pages.page_for(&response)?.fill(&values));
            page.map(Cow::Borrowed).or_else(of_status)
        } else {
            None
        };
        let filled = rules.response_fields.fill(&values);
        match path.map(|path| (self.error_page(&path, request), path)) {
            None => {}
            Some((None, path)) => {
                tracing::debug!(
                    %path,
                    status = response.status.as_u16(),
                    "there is no such error page"
                );
            }
            Some((Some(Answer::Now(page)), _)) => response = with_page(response, page),
            Some((Some(Answer::Later(later)), _)) => {
                let rules = Arc::clone(rules);
                return Answer::later(move |_| async move {
                    let page = later(RequestBody::empty()).await;
                    let mut response = with_page(response, page);
                    rules.response_fields.apply(&mut response, &filled);
                    response
                });
            }
        }
        rules.response_fields.apply(&mut response, &filled);
        Answer::Now(response)
    }

    /// Returns the page at `path`, for the response to `request`.
    fn error_page(&self, path: &str, request: &Request<'_>) -> Option<Answer> {
        let sent_path = RequestPath::parse(path).ok()?;
        let route = self.find_beside(request, &sent_path)?;
        let head = request.head;
        let is_coding = |field: &&Header<'_>| field.name.eq_ignore_ascii_case("accept-encoding");
        let fields = head.fields.iter().filter(|field| is_kept(field.name) || is_coding(field));
        let fields: Vec<_> = fields.copied().collect();
        let method = if head.method == Method::HEAD { Method::HEAD } else { Method::GET };
        // Its parts are beside the page's own path. The target stays the one that the visitor has
        // asked for, which the page may name.
        let sent = RequestHead {
            method,
            path,
            fields: &fields,
            body: BodyLength::None,
            expects_continue: false,
            ..head.clone()
        };
        let rewrite = route.rules.as_ref().and_then(|rules| rules.rewrite.as_ref());
        let path = match rewrite {
            Some(rewrite) => {
                let values = RequestValues { head: &sent, path: &sent_path, ..request.values() };
                rewrite.path(&values, &route.path)
            }
            None => path.to_owned(),
        };
        let rewritten = RequestHead { target: &path, path: &path, query: None, ..sent.clone() };
        let rewritten_path = RequestPath::parse(&path).ok()?;
        let Request { origin, namespace, lineage, routes, .. } = *request;
        let kept = SharedHead::new();
        let page = Request::new(&sent, origin, &sent_path, namespace, lineage, routes, &kept);
        let page = Request { rewritten: &rewritten, path: &rewritten_path, ..route.enter(page) };
        // No password was asked for.
        let page = Request { protection: Protection::default(), ..page };
        route.ask_places_without_code(&page, 0)
    }
}

/// Returns the error with the body of `page`, if that is a page.
fn with_page(error: Response, page: Response) -> Response {
    if error_page::is_page(&page) { error_page::with_error_page(&error, page) } else { error }
}
