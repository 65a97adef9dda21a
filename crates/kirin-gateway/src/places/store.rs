//! The place `store`: pages that the application has put into memory, served without it.
//!
//! The key is the request target: path and query as sent, in the namespace of the site. The
//! response needs a head, an ETag, compiled includes and coded variants. They are made for the
//! first request and kept beside the item.

use std::rc::Rc;
use std::sync::Arc;

use http::{Method, StatusCode};
use kirin_compress::Codings;
use kirin_http::Answer;
use kirin_ssi::RenderProblem;
use kirin_store::{ItemRef, Now};

use super::kind::{OpenPlace, PlaceConfig, PlaceKind, STORE};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use crate::filters::compress;
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::ssi::assembly::{Assembly, AssemblyStage, KeptSurroundings};
use crate::filters::ssi::source::{IncludeSources, Surroundings};
use crate::filters::ssi::streamed;
use crate::pages::page::Page;
use crate::pages::page_response::{PageRequest, PageResponses, refusal, respond};
use crate::pages::store_key::key_of;
use crate::request::context::Request;

/// The kind `store`.
pub static KIND: PlaceKind = PlaceKind {
    name: STORE,
    argument: None,
    runs_code: false,
    answers_all: false,
    keys: &[],
    read: |_, _| Ok(Arc::new(StorePlaceConfig)),
};

/// The place in `try`.
struct StorePlaceConfig;

impl OpenPlace for StorePlaceConfig {
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let (route, resources) = (opening.route, opening.resources);
        let behind = &route.places[opening.number.place + 1..];
        let runs_code = |place: &PlaceConfig| place.kind.runs_code;
        let terms = Terms {
            codings: route.compress.for_pages(),
            is_last: behind.is_empty(),
            is_renewable: !behind.is_empty() && route.places.iter().any(runs_code),
            includes: route.ssi.unwrap_or(true),
        };
        let (responses, sources) = (Rc::clone(&resources.responses), Rc::clone(&resources.sources));
        Ok(Box::new(StorePlace { responses, sources, terms }))
    }
}

/// The place of one route.
pub struct StorePlace {
    responses: Rc<PageResponses>,
    sources: Rc<IncludeSources>,
    terms: Terms,
}

/// The way in which a route serves pages of the store.
#[derive(Clone, Copy)]
pub struct Terms {
    /// The codings in which it compresses.
    pub codings: PlaceCodings,
    /// Whether no other place of the route could make the page again. A page with a part missing is
    /// better than none then.
    pub is_last: bool,
    /// Whether a place behind it runs code, which can renew a stale page.
    pub is_renewable: bool,
    /// Whether directives are carried out.
    pub includes: bool,
}

impl StorePlace {
    fn page(&self, request: &Request<'_>, now: Now) -> Option<(ItemRef, Arc<Page>)> {
        let store = self.responses.store();
        let item = store.get(&key_of(request.rewritten, request.namespace)?, now)?;
        let page = store.companion::<Page>(&item, now, Page::compile);
        Some((item, page))
    }

    fn answer_by(&self, request: &Request<'_>, terms: Terms) -> Option<Answer> {
        let (head, now) = (request.rewritten, Now::from_unix_seconds(request.origin.now));
        if !head.is_get_or_head() {
            return None;
        }
        let (item, page) = self.page(request, now)?;
        if !request.protection.admits(page.protection) {
            return None;
        }
        let Terms { codings, is_last, is_renewable, includes } = terms;
        if item.is_stale() && is_renewable && head.method == Method::GET && page.renewal.is_due(now)
        {
            return None;
        }
        let page = page.read_with(request.syntax);
        let page_head = page.head.as_ref()?;
        let codings = if page_head.varying.is_some() { codings } else { Codings::NONE.into() };
        let page_request = PageRequest::new(head, codings, now);
        if let Some(coding) = page_head.stored_coding
            && !coding.is_taken_by(page_request.fields.accept_encoding.as_deref())
        {
            return is_last.then(|| Answer::Now(refusal(StatusCode::NOT_ACCEPTABLE)));
        }
        if includes && page.template.is_dynamic() {
            return self.assemble(item, page, &page_request, is_last, request);
        }
        Some(Answer::Now(self.responses.plain(&item, &page, page_head, &page_request)))
    }

    /// Assembles a page for this request: at once if all of it is in memory.
    fn assemble(
        &self,
        item: ItemRef,
        page: Arc<Page>,
        page_request: &PageRequest<'_>,
        is_last: bool,
        request: &Request<'_>,
    ) -> Option<Answer> {
        let now = Now::from_unix_seconds(request.origin.now);
        let mut assembly = Assembly::new(&page.template, page.digest, request.lineage.variables());
        let stage = assembly.run(Surroundings { sources: &self.sources, now, request });
        if let Some(RenderProblem::Missing(missing)) = assembly.problem()
            && !is_last
        {
            tracing::debug!(page = %text(item.key()), missing = %text(&missing), "an include is not in the store; the next place answers");
            return None;
        }
        if stage == AssemblyStage::Whole {
            let assembled = assembly.finish(&text(item.key()));
            return Some(self.responses.assembled(&item, &page, assembled, page_request));
        }
        let head = page.head.as_ref()?;
        let codings = page_request.place_codings();
        let page_is = KeptSurroundings::new(&self.sources, now, request.keep());
        if streamed::is_wanted(request, &head.fields) {
            let fields = streamed::fields(page_request.uncoded_fields(head));
            let body = streamed::body(assembly, page_is, text(item.key()));
            let response = respond(head.status, fields, body);
            let threads = self.responses.threads();
            return Some(compress::around(request, codings, threads, |_| Answer::Now(response)));
        }
        let responses = Rc::clone(&self.responses);
        Some(Answer::later(move |body| async move {
            assembly.settle_whole(&page_is, body.client()).await;
            let answer = page_is.request.with(|request| {
                let assembled = assembly.finish(&text(item.key()));
                let page_request = PageRequest::new(request.head, codings, now);
                responses.assembled(&item, &page, assembled, &page_request)
            });
            answer.response(body).await
        }))
    }
}

impl Place for StorePlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        self.answer_by(request, self.terms)
    }

    /// Answers as if no other place could make the page again: code is not asked for an error page.
    fn answer_without_code(&self, request: &Request<'_>) -> Option<Answer> {
        let terms = Terms { is_last: true, is_renewable: false, ..self.terms };
        self.answer_by(request, terms)
    }

    fn has(&self, request: &Request<'_>) -> bool {
        let now = Now::from_unix_seconds(request.origin.now);
        let page = self.page(request, now);
        page.is_some_and(|(_, page)| {
            page.head.is_some() && request.protection.admits(page.protection)
        })
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
