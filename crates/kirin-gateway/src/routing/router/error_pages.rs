//! What happens to every response of a route with rules: an error may get a page, and then all get
//! the route's fields.
//!
//! The page comes from a place that has it in memory or in a file. No application is asked for it:
//! it may be what failed. What the page includes is asked for as for other pages, on behalf of who
//! has asked for what failed.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::Method;
use httparse::Header;
use kirin_http::{Answer, BodyLength, Origin, RequestBody, RequestHead, Response};
use kirin_store::Now;
use kirin_workers::MetaVariables;

use crate::request::subrequest::{Lineage, Parent, is_kept};
use crate::routing::error_page;
use crate::routing::path_rest::{self, meant_path};
use crate::routing::protection::Protection;
use crate::routing::route::Place;
use crate::routing::router::{Lookup, Routes};
use crate::routing::rules::Rules;

impl Routes {
    /// The response to `request` as it leaves.
    pub(super) fn finish(
        self: &Rc<Self>,
        rules: &Arc<Rules>,
        mut response: Response,
        request: &RequestHead<'_>,
        (origin, lineage): (Origin<'_>, &Lineage),
    ) -> Answer {
        // A part of a page that is an error is not shown, so that nobody would see its page.
        let path = if lineage.variables().is_none() {
            rules.error_pages.page_for(&response)
        } else {
            None
        };
        let page = path.map(|path| (path, self.error_page(path, request, origin, lineage)));
        match page {
            None => {}
            Some((path, None)) => {
                tracing::debug!(
                    path,
                    status = response.status.as_u16(),
                    "there is no such error page"
                );
            }
            Some((_, Some(Answer::Now(page)))) => response = clothed(response, page),
            Some((_, Some(Answer::Later(later)))) => {
                let rules = Arc::clone(rules);
                return Answer::later(move |_| async move {
                    let page = later(RequestBody::empty()).await;
                    let mut response = clothed(response, page);
                    rules.response_fields.apply(&mut response);
                    response
                });
            }
        }
        rules.response_fields.apply(&mut response);
        Answer::Now(response)
    }

    /// The page at `path`, for the answer to `request`.
    fn error_page(
        self: &Rc<Self>,
        path: &str,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        lineage: &Lineage,
    ) -> Option<Answer> {
        let route = &self.routes[self.find(&meant_path(path).ok()?)?];
        let is_coding = |field: &&Header<'_>| field.name.eq_ignore_ascii_case("accept-encoding");
        let fields: Vec<_> = request
            .fields
            .iter()
            .filter(|field| is_kept(field.name) || is_coding(field))
            .copied()
            .collect();
        let method = if request.method == Method::HEAD { Method::HEAD } else { Method::GET };
        // The page's own path, beside which its parts are; and what the visitor has asked for,
        // which it may name.
        let (body, expects_continue) = (BodyLength::None, false);
        let sent = RequestHead {
            method,
            path,
            fields: &fields,
            body,
            expects_continue,
            ..request.clone()
        };
        let rewrite = route.rules.as_ref().and_then(|rules| rules.rewrite.as_ref());
        let rewritten =
            rewrite.map(|rewrite| rewrite.path(&path_rest::rest_below(path, &route.path)));
        let path = rewritten.as_deref().unwrap_or(path);
        let seen = RequestHead { target: path, path, query: None, ..sent.clone() };
        let lookup = Lookup { sent: &sent, seen: &seen, meta: MetaVariables::default(), lineage };
        // Nobody has been asked for a password.
        let protection = Protection::default();
        let parent = Parent { protection, ..self.parent(route, &lookup, origin) };
        let now = Now::from_unix_seconds(origin.now);
        route.places.iter().find_map(|place| match place {
            Place::Store => self.store.answer(&seen, now, route.store_terms(true), parent),
            Place::Files(files, hidden) if !hidden.hide(seen.path) => {
                let ask = |request: &RequestHead<'_>| files.answer(request, Instant::now());
                match route.has_filter() {
                    true => {
                        let compress = (route.compress.of_pages(), &self.threads);
                        self.ssi.around_files(parent, &seen, compress, ask)
                    }
                    false => ask(&seen).map(Answer::Now),
                }
            }
            Place::Files(..) | Place::App(_) | Place::Lua(_) | Place::Proxy(_) => None,
        })
    }
}

/// The error with its page, if that is one.
fn clothed(error: Response, page: Response) -> Response {
    if error_page::is_page(&page) { error_page::clothe(&error, page) } else { error }
}
